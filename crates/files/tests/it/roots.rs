//! Replaced folders: another folder under the same path is served within a second.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shearwater::testing::{TestResponse, Tested};
use shearwater::{App, Response, Service};
use shearwater_files::{Files, FindOptions, Folder, FolderOptions};
use testkit::TestFolder;

/// Time after a swap in which the old folder may still be served, in milliseconds.
const VISIBLE_WITHIN_MS: u64 = 1000;
/// Shortest time between two look-ups of the path, in milliseconds.
const LOOKUP_INTERVAL_MS: u64 = 500;
const STEP: Duration = Duration::from_millis(20);
/// Length of an uncached file.
const LARGE: usize = 100_000;

/// Requests: an index, a cached and an uncached file, a sibling, a list, a fallback, an error page.
const TARGETS: [(&str, &str); 8] = [
    ("/", ""),
    ("/small.txt", ""),
    ("/large.bin", ""),
    ("/packed.css", "Accept-Encoding: gzip\r\n"),
    ("/packed.css", ""),
    ("/list/", ""),
    ("/not/there", ""),
    ("/error-page", ""),
];

/// Files, and a path whose response is an error page.
struct WithPage(Files);

impl Service for WithPage {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        if request.path() != "/error-page" {
            return self.0.respond(request, response);
        }
        self.0.respond_page("/404.html", 404, request, response, |_, response| {
            response.status(404).text("no page\n");
        });
    }
}

/// Replaces the served folder with one of this version.
type Swap = fn(&Swapped, char);

const SWAPS: [(&str, Swap); 3] = [
    ("made anew", |site, version| {
        fs::remove_dir_all(site.served()).expect("the folder");
        lay_out(&site.served(), version);
    }),
    ("moved into its place", |site, version| {
        lay_out(&site.folder.at("new"), version);
        fs::rename(site.served(), site.folder.at(format!("before-{version}"))).expect("moved away");
        fs::rename(site.folder.at("new"), site.served()).expect("moved");
    }),
    ("led to by a link", |site, version| {
        let release = site.folder.at(format!("release-{version}"));
        lay_out(&release, version);
        symlink(release, site.folder.at("next")).expect("a link");
        if fs::symlink_metadata(site.served()).expect("the folder").is_dir() {
            fs::remove_dir_all(site.served()).expect("removed");
        }
        fs::rename(site.folder.at("next"), site.served()).expect("the link is swapped");
    }),
];

/// Writes the files of a version, which contain only its letter.
fn lay_out(path: &Path, version: char) {
    fs::create_dir_all(path.join("list")).expect("a folder");
    let text = version.to_string();
    for name in ["index.html", "small.txt", "packed.css", "packed.css.gz", "fallback.html", "404.html"] {
        fs::write(path.join(name), &text).expect("a file");
    }
    fs::write(path.join("large.bin"), text.repeat(LARGE)).expect("a file");
    fs::write(path.join(format!("list/name-{version}")), "").expect("a file");
}

/// A folder served on a simulated kernel, with a clock driven by the test.
struct Swapped {
    folder: TestFolder,
    tested: Tested,
}

impl Swapped {
    /// Creates a site of version `a`.
    fn new() -> Self {
        let files = TestFolder::new();
        lay_out(&files.at("served"), 'a');
        let find = FindOptions { spa: Some("/fallback.html".to_owned()), ..FindOptions::default() };
        let options = FolderOptions { find, listing: true, ..FolderOptions::default() };
        let folder = Folder::open_with(&files.at("served"), &options).expect("a folder");
        let app = App::new().mount("/", move |_| WithPage(folder.files()));
        Self { folder: files, tested: Tested::new(app).expect("one mount") }
    }

    fn served(&self) -> PathBuf {
        self.folder.at("served")
    }

    fn now_ms(&mut self) -> u64 {
        self.tested.now_ms()
    }

    fn pass(&mut self, time: Duration) {
        self.tested.pass(time);
    }

    fn ask(&mut self, (path, fields): (&str, &str)) -> TestResponse {
        self.tested.ask(format!("GET {path} HTTP/1.1\r\nHost: test\r\nAccept: text/html\r\n{fields}\r\n"))
    }

    /// Returns the version of a response, or `-` if there was nothing to send. Panics if it is of two versions.
    fn version(&mut self, target: (&str, &str)) -> char {
        let response = self.ask(target);
        assert!(response.status < 500, "{target:?}: {}", response.status);
        if response.status != if target.0 == "/error-page" { 404 } else { 200 }
            || response.text().starts_with("no page")
        {
            return '-';
        }
        if response.body[0] == b'<' {
            let is_listed = |version: &char| response.text().contains(&format!("name-{version}"));
            let versions: Vec<char> = "abc".chars().filter(is_listed).collect();
            assert!(versions.len() <= 1, "a list of two folders");
            return *versions.first().unwrap_or(&'-');
        }
        let version = char::from(response.body[0]);
        assert!(response.body.iter().all(|&byte| char::from(byte) == version), "{target:?}: a mixture");
        version
    }

    /// Requests everything. Returns true if all of it is of this version.
    fn all_are(&mut self, version: char) -> bool {
        TARGETS.iter().all(|target| self.version(*target) == version)
    }

    fn statuses(&mut self) -> Vec<u16> {
        TARGETS.iter().map(|target| self.ask(*target).status).collect()
    }
}

#[test]
fn serves_a_replaced_folder_within_a_second_and_the_old_one_never_again() {
    for (what, swap) in SWAPS {
        for phase_ms in [0, 260, 480] {
            let mut site = Swapped::new();
            // Each name is requested at a different phase.
            for target in TARGETS {
                assert_eq!(site.version(target), 'a');
                site.pass(3 * STEP);
            }
            site.pass(Duration::from_millis(phase_ms));
            for version in ['b', 'c'] {
                swap(&site, version);
                let (swapped_ms, mut is_new) = (site.now_ms(), false);
                while site.now_ms() < swapped_ms + VISIBLE_WITHIN_MS + 100 {
                    for target in TARGETS {
                        let is_present = site.version(target) == version;
                        let since = site.now_ms() - swapped_ms;
                        assert!(is_present || !is_new, "{what}: {target:?} is old again after {since} ms");
                        assert!(
                            is_present || since < VISIBLE_WITHIN_MS,
                            "{what}: {target:?} is old after {since} ms"
                        );
                        is_new = is_present;
                    }
                    site.pass(STEP);
                }
            }
        }
    }
}

#[test]
fn looks_the_path_up_every_500_ms() {
    let mut site = Swapped::new();
    assert!(site.all_are('a'));
    let looked_up_ms = site.now_ms();
    SWAPS[1].1(&site, 'b');
    while site.now_ms() < looked_up_ms + LOOKUP_INTERVAL_MS {
        // Not in memory: opened, or found open, for each request.
        assert_eq!(site.version(("/large.bin", "")), 'a');
        site.pass(STEP);
    }
    assert!(site.all_are('b'));
}

#[test]
fn first_request_after_idle_time_gets_the_new_folder() {
    for (what, swap) in SWAPS {
        for target in TARGETS {
            let mut site = Swapped::new();
            assert!(site.all_are('a'));
            swap(&site, 'b');
            site.pass(Duration::from_secs(10));
            assert_eq!(site.version(target), 'b', "{what}: {target:?}");
        }
    }
}

#[test]
fn missing_folder_is_not_found_until_it_is_back() {
    let missing: [fn(&Swapped); 3] = [
        |_| {},
        |site| fs::write(site.served(), "a file").expect("a file"),
        |site| symlink("served", site.served()).expect("a link to itself"),
    ];
    for leave in missing {
        let mut site = Swapped::new();
        assert!(site.all_are('a'));
        fs::rename(site.served(), site.folder.at("away")).expect("moved away");
        leave(&site);
        site.pass(Duration::from_millis(VISIBLE_WITHIN_MS));
        assert_eq!(site.statuses(), [404; TARGETS.len()]);
        let _ = fs::remove_file(site.served());
        fs::rename(site.folder.at("away"), site.served()).expect("moved back");
        site.pass(Duration::from_millis(VISIBLE_WITHIN_MS));
        assert!(site.all_are('a'));
    }
}
