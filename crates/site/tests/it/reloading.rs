//! Reloads: folders that stay the same keep their caches, the others are served from the disk.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shearwater::{Control, Reload, Verbosity};
use shearwater_files::{CacheLimits, Folder, FolderOptions};
use shearwater_site::{Content, Options, Site, SiteService, Sites};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::local::local_server;
use crate::served::hosts;

/// Time for which a cached file is sent without a check, and a reserve.
const FRESH: Duration = Duration::from_millis(400);

/// Counts opens beneath all folders of a test.
#[derive(Clone, Default)]
struct Opens(Arc<AtomicUsize>);

impl Opens {
    /// Opens a folder on a disk that is never in the kernel's caches.
    fn folder(&self, path: &Path, options: &FolderOptions) -> Folder {
        let count = Arc::clone(&self.0);
        let folder = Folder::open_with(path, options).expect("it is there");
        folder.with_slow_disk(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Returns a site for each folder, with its number as its host.
fn sites(folders: Vec<Folder>, cache: CacheLimits) -> Sites {
    let site = |folder: usize| Site {
        hosts: hosts(&[&folder.to_string()]),
        content: Content::Files(folder),
        ..Site::default()
    };
    let sites = (0..folders.len()).map(site).collect();
    Sites::new(Options { folders, cache, sites }).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn reload(control: &Control, sites: Sites) {
    let reload = Reload::new(move |_, present: &SiteService| sites.service_after(present));
    control.reload(reload).expect("it serves").wait(TIMEOUT).expect("nothing blocks it");
}

/// Returns the file of a site.
fn get(client: &mut TestClient, host: usize) -> String {
    client.request("GET", "/f.txt", &[&format!("Host: {host}")]).text().to_owned()
}

#[test]
fn a_folder_keeps_its_cache_if_nothing_of_it_changes() {
    let folder = TestFolder::new();
    folder.file("a/f.txt", "of a").file("b/f.txt", "of b").file("c/f.txt", "of c");
    let (opens, default) = (Opens::default(), FolderOptions::default());
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.at(name));
    let open = |path: &Path| opens.folder(path, &default);
    let cache = CacheLimits::default();
    let server = local_server().workers(1).verbosity(Verbosity::Off);
    let first = sites(vec![open(&a), open(&b)], cache);
    let running = server.start_service(move |_| first.service()).expect("it starts");
    let control = running.control();
    let client = Mutex::new(TestClient::connect(running.address()));
    let ask = |host| get(&mut client.lock().expect("no panic"), host);
    // The numbers of the folders change, too.
    type Next<'a> = Box<dyn Fn() -> Sites + 'a>;
    let listing = FolderOptions { listing: true, ..default.clone() };
    let small = CacheLimits { cached_bytes_max: 1 << 20, ..cache };
    let cases: [(Next<'_>, &[&str], bool); 4] = [
        (Box::new(|| sites(vec![open(&c), open(&a), open(&b)], cache)), &["of c", "of a", "of b"], true),
        (Box::new(|| sites(vec![open(&b)], cache)), &["of b"], true),
        (Box::new(|| sites(vec![opens.folder(&b, &listing)], cache)), &["of b"], false),
        (Box::new(|| sites(vec![open(&b)], small)), &["of b"], false),
    ];
    for (next, texts, is_kept) in cases {
        let tried_until = Instant::now() + TIMEOUT;
        let mut is_shown = false;
        // Files that changed lately aren't cached, and the requests may take too long.
        while !is_shown && Instant::now() < tried_until {
            reload(&control, sites(vec![open(&a), open(&b)], cache));
            let begun = Instant::now();
            (0..3).for_each(|_| assert_eq!((ask(0), ask(1)), ("of a".to_owned(), "of b".to_owned())));
            reload(&control, next());
            opens.take();
            let last = texts.len() - 1;
            assert_eq!(ask(last), texts[last]);
            let has_opened = opens.take() > 0;
            texts.iter().enumerate().for_each(|(host, text)| assert_eq!(ask(host), *text));
            is_shown = begun.elapsed() < FRESH && has_opened != is_kept;
        }
        assert!(is_shown, "{texts:?}: {is_kept}");
    }
    control.stop();
    running.wait_for_control().expect("it ends");
}

#[test]
fn another_folder_at_the_path_is_served_at_once() {
    let folder = TestFolder::new();
    folder.file("a/f.txt", "first").file("b/f.txt", "second");
    let opens = Opens::default();
    let path = folder.at("a");
    let open = || sites(vec![opens.folder(&path, &FolderOptions::default())], CacheLimits::default());
    let first = open();
    let server = local_server().workers(1).verbosity(Verbosity::Off);
    let running = server.start_service(move |_| first.service()).expect("it starts");
    let mut client = TestClient::connect(running.address());
    assert_eq!(get(&mut client, 0), "first");
    std::fs::rename(&path, folder.at("away")).expect("it is there");
    std::fs::rename(folder.at("b"), &path).expect("it is there");
    reload(&running.control(), open());
    assert_eq!(get(&mut client, 0), "second");
    running.control().stop();
    running.wait_for_control().expect("it ends");
}
