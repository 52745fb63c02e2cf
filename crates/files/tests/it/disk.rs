//! Slow and hanging disks: they delay the responses that need them, and no others.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, DriverChoice, Request, Response, Service, after, guard};
use shearwater_files::limits::{DISK_JOBS_PER_REQUEST_MAX, DISK_THREADS_MAX, DISK_WAIT_S_MAX};
use shearwater_files::{Folder, FolderOptions};
use testkit::TestFolder;

use crate::site::TestSite;

/// Time after which a test fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A disk on which names that start with `hang` aren't opened until it is released.
#[derive(Clone, Default)]
struct HangingDisk(Arc<DiskState>);

#[derive(Default)]
struct DiskState {
    is_released: Mutex<bool>,
    changed: Condvar,
    /// Opens of each name.
    opens: Mutex<HashMap<Vec<u8>, usize>>,
}

impl HangingDisk {
    /// Returns the disk, and a channel with each name whose open hangs.
    fn new() -> (Self, Receiver<Vec<u8>>, impl Fn(&[u8]) + Send + Sync + 'static) {
        let disk = Self::default();
        let (hangs, hanging): (SyncSender<Vec<u8>>, _) = sync_channel(1000);
        let opened = disk.clone();
        (disk, hanging, move |name: &[u8]| opened.open(name, &hangs))
    }

    fn open(&self, name: &[u8], hangs: &SyncSender<Vec<u8>>) {
        *self.0.opens.lock().expect("no panic").entry(name.to_vec()).or_default() += 1;
        if name.starts_with(b"hang") {
            // A test that has ended doesn't listen.
            let _ = hangs.send(name.to_vec());
            let released = self.0.is_released.lock().expect("no panic");
            drop(self.0.changed.wait_while(released, |released| !*released).expect("no panic"));
        }
    }

    fn release(&self) {
        *self.0.is_released.lock().expect("no panic") = true;
        self.0.changed.notify_all();
    }

    fn opens(&self, name: &str) -> usize {
        self.0.opens.lock().expect("no panic").get(name.as_bytes()).copied().unwrap_or(0)
    }
}

impl Drop for HangingDisk {
    /// Ends the threads of a failed test.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.release();
        }
    }
}

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

#[test]
fn a_hanging_file_delays_no_other_response() {
    for driver in [DriverChoice::Auto, DriverChoice::Uring] {
        let (disk, hanging, hook) = HangingDisk::new();
        let site = TestSite::with_app(driver, &FolderOptions::default(), |app, folder| {
            let folder = folder.with_slow_disk(hook);
            app.mount("/", move |_| folder.files())
        });
        let Some(site) = site else { continue };
        site.file("hang", "in the end").file("small", "small").file("large", vec![7; 200_000]);
        let mut waiting = site.connect();
        waiting.ask("GET", "/hang", &[]);
        assert_eq!(hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened"), b"hang");
        let mut client = site.connect();
        for _ in 0..20 {
            assert_eq!(client.get("/small").body, b"small");
            assert_eq!(client.get("/large").body.len(), 200_000);
            assert_eq!(client.get("/none").status, 404);
        }
        disk.release();
        let response = waiting.response("GET");
        assert_eq!((response.status, response.text()), (200, "in the end"));
    }
}

#[test]
fn requests_for_one_file_share_the_work() {
    let (disk, hanging, hook) = HangingDisk::new();
    let site = TestSite::with_app(DriverChoice::Auto, &FolderOptions::default(), |app, folder| {
        let folder = folder.with_slow_disk(hook);
        app.mount("/", move |_| folder.files())
    });
    let site = site.expect("a driver");
    site.file("hang", "content").file("other", "other");
    let mut clients: Vec<_> = (0..3 * DISK_THREADS_MAX).map(|_| site.connect()).collect();
    for client in &mut clients {
        client.ask("GET", "/hang", &[]);
    }
    hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened");
    // Its response means that the worker has seen all requests before.
    assert_eq!(site.get("/other").1, b"other");
    // Those that leave don't end the others' work.
    drop(clients.remove(0));
    assert_eq!(site.get("/other").1, b"other");
    disk.release();
    for client in &mut clients {
        assert_eq!(client.response("GET").text(), "content");
    }
    assert_eq!(disk.opens("hang"), 1);
}

#[test]
fn as_many_hanging_files_as_threads_delay_the_rest_of_their_folder() {
    let (disk, hanging, hook) = HangingDisk::new();
    let site = TestSite::with_app(DriverChoice::Auto, &FolderOptions::default(), |app, folder| {
        let other = folder.clone().with_slow_disk(|_| ());
        let folder = folder.with_slow_disk(hook);
        app.mount("/", move |_| folder.files()).mount("/other", move |_| other.files())
    });
    let site = site.expect("a driver");
    site.file("f", "f");
    let mut clients: Vec<_> = (0..DISK_THREADS_MAX).map(|_| site.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask("GET", &format!("/hang{number}"), &[]);
        hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened");
    }
    let mut waiting = site.connect();
    waiting.ask("GET", "/f", &[]);
    assert_eq!(site.get("/other/f").1, b"f", "another folder has its own threads");
    assert_eq!(disk.opens("f"), 0, "no thread is free");
    disk.release();
    assert_eq!(waiting.response("GET").text(), "f");
    clients.iter_mut().for_each(|client| assert_eq!(client.response("GET").status, 404));
}

/// Counts the calls of a service.
struct CountedService<S> {
    service: S,
    calls: Calls,
}

/// Steps and services that were called, in order, with the status that is known then.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, name: &str, response: &Response<'_>) {
        self.0.lock().expect("no panic").push(format!("{name} {}", response.status_code()));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

impl<S: Service> Service for CountedService<S> {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.calls.add("service", response);
        self.service.respond(request, response);
    }
}

/// An app in which a folder is mounted between steps, on a simulated clock.
fn noting_app(folder: Folder, calls: &Calls) -> Tested {
    let (before, behind, mounted) = (calls.clone(), calls.clone(), calls.clone());
    let app = App::new()
        .with(guard(move |_: &Request, response: &mut Response| {
            before.add("before", response);
            ControlFlow::Continue(())
        }))
        .with(after(move |_: &Request, response: &mut Response| {
            behind.add("after", response);
            let status = response.status_code();
            response.field("X-After", status.to_string());
        }))
        .mount("/", move |_| CountedService { service: folder.files(), calls: mounted.clone() });
    Tested::new(app).expect("valid routes")
}

/// The same with a folder on a hanging disk.
fn hanging_app(calls: &Calls) -> (Tested, TestFolder, HangingDisk, Receiver<Vec<u8>>) {
    let (disk, hanging, hook) = HangingDisk::new();
    let folder = TestFolder::new();
    for name in ["hang", "f"] {
        folder.file(name, name);
    }
    let opened = Folder::open(&folder.at(".")).expect("a folder").with_slow_disk(hook);
    (noting_app(opened, calls), folder, disk, hanging)
}

#[test]
fn gives_up_after_a_while() {
    let calls = Calls::default();
    let (mut tested, _folder, disk, hanging) = hanging_app(&calls);
    let mut client = tested.connect();
    client.send(request("/hang"));
    tested.settle();
    hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened");
    tested.pass(Duration::from_secs(DISK_WAIT_S_MAX) - Duration::from_millis(100));
    assert!(client.response().is_none());
    tested.pass(Duration::from_millis(200));
    let response = client.response().expect("it isn't waited for longer");
    assert_eq!((response.status, response.field("Retry-After")), (503, Some("1")));
    assert_eq!(calls.take(), ["before 200", "service 200", "after 503"]);
    // The next request shares the work that still hangs, and the connection is usable.
    client.send(request("/hang"));
    tested.settle();
    disk.release();
    tested.settle_offloaded();
    assert_eq!(client.response().expect("the disk has responded").text(), "hang");
    assert_eq!(calls.take(), ["before 200", "service 200", "after 200"]);
    assert_eq!(disk.opens("hang"), 1);
}

/// Each result is of a former folder.
#[test]
fn gives_up_if_the_folder_is_replaced_all_the_time() {
    let (opened, openings) = sync_channel(1000);
    let (release, released) = sync_channel(1000);
    let released = Mutex::new(released);
    let hook = move |name: &[u8]| {
        if name == b"hang" {
            opened.send(()).expect("the test listens");
            released.lock().expect("no panic").recv().expect("it is released");
        }
    };
    let folder = TestFolder::new();
    folder.file("served/hang", "hang");
    let served = Folder::open(&folder.at("served")).expect("a folder").with_slow_disk(hook);
    let mut tested = noting_app(served, &Calls::default());
    let mut client = tested.connect();
    client.send(request("/hang"));
    for number in 0..DISK_JOBS_PER_REQUEST_MAX {
        while openings.try_recv().is_err() {
            tested.settle();
        }
        std::fs::rename(folder.at("served"), folder.at(number.to_string())).expect("moved");
        folder.file("served/hang", "hang");
        tested.pass(Duration::from_millis(500));
        // Another request notices.
        tested.connect().send(request("/none"));
        tested.settle();
        assert!(client.response().is_none(), "{number}");
        release.send(()).expect("it waits");
    }
    tested.settle_offloaded();
    assert_eq!(client.response().expect("it isn't tried again").status, 503);
}

#[test]
fn a_client_that_leaves_is_forgotten() {
    let calls = Calls::default();
    let (mut tested, _folder, disk, hanging) = hanging_app(&calls);
    let mut client = tested.connect();
    client.send(request("/hang"));
    tested.settle();
    hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened");
    client.reset();
    tested.settle();
    assert_eq!(tested.totals().connections_open(), 0);
    disk.release();
    assert_eq!(calls.take(), ["before 200", "service 200"], "there is no response");
    assert_eq!(tested.get("/hang").text(), "hang");
    assert_eq!(tested.get("/f").text(), "f");
}

#[test]
fn each_request_calls_steps_and_service_once() {
    let files = TestFolder::new();
    files.file("f", "f").file("large", vec![7; 200_000]).file("a/index.html", "<p>index").file("list/f", "f");
    files.file("f.css", "p {}").file("f.css.br", "\u{c}packed").link("out", "/etc/passwd");
    let folder = Folder::open_with(&files.at("."), &options()).expect("a folder");
    let slow = folder.clone().with_slow_disk(|_| ());
    let sent = [folder, slow].map(|folder| {
        let calls = Calls::default();
        let mut tested = noting_app(folder, &calls);
        let mut sent = Vec::new();
        for (method, target, field, status) in [
            ("GET", "/f", "X: y", 200),
            ("HEAD", "/f", "X: y", 200),
            ("GET", "/f", "Range: bytes=0-0", 206),
            ("GET", "/f", "Range: bytes=1-1", 416),
            ("GET", "/f", "If-None-Match: *", 304),
            ("GET", "/f", "If-Match: \"x\"", 412),
            ("GET", "/f.css", "Accept-Encoding: br", 200),
            ("GET", "/large", "X: y", 200),
            ("GET", "/a/", "X: y", 200),
            ("GET", "/a", "X: y", 301),
            ("GET", "/list/", "X: y", 200),
            ("GET", "/none", "X: y", 404),
            ("GET", "/out", "X: y", 403),
            ("POST", "/f", "X: y", 405),
            ("OPTIONS", "/f", "X: y", 204),
            ("BREW", "/f", "X: y", 501),
        ] {
            // Twice: the second may be cached.
            for round in 0..2 {
                let mut client = tested.connect();
                client.send(format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{field}\r\n\r\n"));
                tested.settle_offloaded();
                let bytes = String::from_utf8_lossy(client.unread()).into_owned();
                let expected = ["before 200".to_owned(), "service 200".to_owned(), format!("after {status}")];
                assert_eq!(calls.take(), expected, "{method} {target} {field} {round}: {bytes}");
                assert!(bytes.starts_with(&format!("HTTP/1.1 {status} ")), "{target} {field}: {bytes}");
                let lines = bytes.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: "));
                sent.push(lines.collect::<String>());
            }
        }
        sent
    });
    let [warm, slow] = sent;
    assert_eq!(warm, slow);
    assert!(warm.iter().all(|bytes| bytes.contains("X-After: ")));
}

#[test]
fn each_of_many_requests_for_one_file_calls_its_service_once() {
    let calls = Calls::default();
    let (mut tested, _folder, disk, hanging) = hanging_app(&calls);
    let mut clients: Vec<_> = (0..10).map(|_| tested.connect()).collect();
    for client in &mut clients {
        client.send(request("/hang"));
    }
    tested.settle();
    hanging.recv_timeout(TEST_TIMEOUT).expect("it is opened");
    assert_eq!(calls.take(), ["before 200", "service 200"].repeat(10));
    // One that leaves has no response.
    clients.remove(0).reset();
    tested.settle();
    disk.release();
    tested.settle_offloaded();
    assert_eq!(calls.take(), ["after 200"; 9]);
    for client in &mut clients {
        assert_eq!(client.response().expect("the disk has responded").text(), "hang");
    }
    assert_eq!(disk.opens("hang"), 1);
}

#[test]
fn responses_from_a_slow_disk_equal_the_others() {
    let site = TestSite::with_app(DriverChoice::Auto, &options(), |app, folder| {
        let slow = folder.clone().with_slow_disk(|_| ());
        app.mount("/", move |_| folder.files()).mount("/slow", move |_| slow.files())
    });
    let site = site.expect("a driver");
    site.file("a/index.html", "<p>index").file("a.css", "p {}").file("page.html", "page").file("empty", "");
    site.file("64k", vec![7; 65_536]).file("100k", vec![8; 100_000]).file("a.css.br", "\u{c}packed");
    site.file("list/one", "1").file("list/sub/two", "2").link("list/link", "one").link("out", "/etc/passwd");
    let mut client = site.connect();
    for target in [
        "/a/",
        "/a",
        "/a.css",
        "/page",
        "/page.html",
        "/page/",
        "/empty",
        "/64k",
        "/100k",
        "/none",
        "/a.css/",
        "/out",
        "/list/",
        "/list/?sort=size",
        "/list/?after=link",
        "/list/?order=desc&after=one",
        "/list/%2e%2e/a.css",
        "/100%",
        "/.hidden",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            for fields in [
                &[][..],
                &["Accept-Encoding: br"],
                &["If-None-Match: *"],
                &["If-Match: \"x\""],
                &["Range: bytes=1-2"],
                &["Accept: application/json"],
            ] {
                // Twice: the second may be cached.
                for round in 0..2 {
                    let [warm, slow] = ["", "/slow"].map(|mount| {
                        let response = client.request(method, &format!("{mount}{target}"), fields);
                        let fields =
                            response.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date"));
                        let fields: Vec<_> = fields
                            .map(|(name, value)| format!("{name}: {value}").replace("/slow", ""))
                            .collect();
                        (response.status, fields, response.body.clone())
                    });
                    assert_eq!(warm, slow, "{method} {target} {fields:?} {round}");
                }
            }
        }
    }
}

fn options() -> FolderOptions {
    let find = shearwater_files::FindOptions { clean_urls: true, ..Default::default() };
    FolderOptions { find, listing: true, ..FolderOptions::default() }
}
