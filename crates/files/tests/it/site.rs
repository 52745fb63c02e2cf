//! A temporary folder, files outside of it, and a server for the folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use shearwater::{App, DriverChoice, Error, Running, Server, Service, StartError, Verbosity};
use shearwater_files::{CacheLimits, Files, Folder, FolderOptions};
use testkit::{TestClient, TestFolder};

use crate::local::local_server;

/// Content of files outside of the folder, which no response may contain.
pub(crate) use testkit::hostile_targets::CANARY;

/// Time limit of a wait for a change, which must show within a second. On a machine without idle time the thread that
/// compresses gets about 3 ‰ of a core.
const WAIT_MAX: Duration = Duration::from_secs(240);

/// Repeats until `is_done`.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < WAIT_MAX, "{what} does not show");
    }
}

/// Bounds with which the tag of a file that isn't cached consists of length and time, and is there at once.
pub(crate) fn dated(cache: CacheLimits) -> CacheLimits {
    CacheLimits { hashed_bytes_max: 0, ..cache }
}

/// `SITE/served` is served, `SITE/outside` is not. Removed when dropped.
pub(crate) struct TestSite {
    pub(crate) folder: TestFolder,
    running: Option<Running>,
    pub(crate) address: SocketAddr,
}

impl TestSite {
    /// Creates a site without a cache: changes show at once.
    pub(crate) fn new() -> Self {
        Self::with(&FolderOptions::default())
    }

    /// Creates a site with these options and without a cache.
    pub(crate) fn with(options: &FolderOptions) -> Self {
        Self::of(options, dated(CacheLimits::none()), |files| files)
    }

    /// Creates a site with a cache.
    pub(crate) fn cached() -> Self {
        Self::cached_with(&FolderOptions::default())
    }

    /// Creates a site with these options and a cache.
    pub(crate) fn cached_with(options: &FolderOptions) -> Self {
        Self::of(options, dated(CacheLimits::default()), |files| files)
    }

    /// Creates a site whose service is built from the files.
    pub(crate) fn of<S: Service + 'static>(
        options: &FolderOptions,
        cache: CacheLimits,
        make: impl Fn(Files) -> S + Send + Sync + 'static,
    ) -> Self {
        Self::start("served", options, |folder, server| {
            server.start_service(move |_| make(folder.files_with(cache)))
        })
        .expect("a driver")
    }

    /// Creates a site that serves the folder above, with the files outside.
    pub(crate) fn of_all() -> Self {
        Self::start(".", &FolderOptions::default(), |folder, server| {
            server.start_service(move |_| folder.files())
        })
        .expect("a driver")
    }

    /// Serves with this driver; `None` if it isn't available.
    pub(crate) fn driven(driver: DriverChoice, cache: CacheLimits) -> Option<Self> {
        Self::start("served", &FolderOptions::default(), |folder, server| {
            server.driver(driver).start_service(move |_| folder.files_with(cache))
        })
    }

    /// Serves an app with the folder; `None` if the driver isn't available.
    pub(crate) fn with_app(
        driver: DriverChoice,
        options: &FolderOptions,
        define: impl FnOnce(App, Folder) -> App,
    ) -> Option<Self> {
        Self::start("served", options, |folder, server| {
            server.driver(driver).start(define(App::new(), folder))
        })
    }

    fn start(
        served: &str,
        options: &FolderOptions,
        start: impl FnOnce(Folder, Server) -> Result<Running, Error>,
    ) -> Option<Self> {
        let folder = TestFolder::new();
        std::fs::create_dir(folder.at("served")).expect("a folder");
        folder.file("outside/canary", CANARY);
        let opened = Folder::open_with(&folder.at(served), options).expect("a folder");
        let opened = if crate::SLOW_DISK { opened.with_slow_disk(|_| ()) } else { opened };
        match start(opened, local_server().workers(1).verbosity(Verbosity::Off)) {
            Ok(running) => Some(Self { folder, address: running.address(), running: Some(running) }),
            Err(Error::Start(StartError::Driver { .. })) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.at("served").join(name)
    }

    /// Returns a path outside of the folder.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.at("outside").join(name)
    }

    /// Writes a file and creates its folders.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        self.folder.file(self.at(name), content);
        self
    }

    /// Writes a file of the folder anew and renames it to its name, so that it has another inode.
    pub(crate) fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        self.file("new", content);
        std::fs::rename(self.at("new"), self.at(name)).expect("renamed");
    }

    /// Sets a file's modification time.
    pub(crate) fn modified(&self, name: &str, time: SystemTime) {
        self.folder.set_modified(self.at(name), time);
    }

    /// Waits for the file system's clock: changes within one tick have the same `ctime`.
    pub(crate) fn tick(&self) {
        self.folder.tick();
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
        self.folder.link(self.at(name), target);
        self
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Returns the status and body for `GET`.
    pub(crate) fn get(&self, target: &str) -> (u16, Vec<u8>) {
        let response = self.connect().get(target);
        (response.status, response.body)
    }

    /// Returns the status for `GET`.
    pub(crate) fn status(&self, target: &str) -> u16 {
        self.get(target).0
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        let running = self.running.take().expect("running until dropped");
        running.control().stop();
        let ended = running.wait();
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}
