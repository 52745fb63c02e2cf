//! A temporary folder, files outside of it, and a server for the folder.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use shearwater::{DriverChoice, Error, Request, Response, Running, Server, Service, StartError, Verbosity};
use shearwater_files::{CacheLimits, Files, Folder, FolderOptions};

use crate::client::Client;

/// Content of files outside of the folder, which no response may contain.
pub(crate) const CANARY: &str = "canary-outside-of-the-folder";

struct Served(Files);

impl Service for Served {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
    }
}

/// `SITE/served` is served, `SITE/outside` is not. Removed when dropped.
pub(crate) struct Site {
    path: PathBuf,
    running: Option<Running>,
    address: SocketAddr,
}

impl Site {
    /// Creates a site without a cache: changes show at once.
    pub(crate) fn new() -> Self {
        Self::serving("served", CacheLimits::none())
    }

    /// Creates a site with these options and without a cache.
    pub(crate) fn with(options: &FolderOptions) -> Self {
        Self::of("served", options, CacheLimits::none())
    }

    /// Creates a site with these options and a cache.
    pub(crate) fn cached_with(options: &FolderOptions) -> Self {
        Self::of("served", options, CacheLimits::default())
    }

    /// Creates a site with a cache.
    pub(crate) fn cached() -> Self {
        Self::serving("served", CacheLimits::default())
    }

    /// Serves this folder with this cache.
    pub(crate) fn serving(folder: &str, cache: CacheLimits) -> Self {
        Self::of(folder, &FolderOptions::default(), cache)
    }

    /// Serves this folder with these options and this cache.
    pub(crate) fn of(folder: &str, options: &FolderOptions, cache: CacheLimits) -> Self {
        Self::start(DriverChoice::Auto, folder, options, cache, Served).expect("a driver")
    }

    /// Serves with this driver; `None` if it isn't available.
    pub(crate) fn driven(driver: DriverChoice, folder: &str, cache: CacheLimits) -> Option<Self> {
        Self::start(driver, folder, &FolderOptions::default(), cache, Served)
    }

    /// Creates a site whose service is built from the files.
    pub(crate) fn responding<S: Service + 'static>(
        options: &FolderOptions,
        cache: CacheLimits,
        make: impl Fn(Files) -> S + Send + Sync + 'static,
    ) -> Self {
        Self::start(DriverChoice::Auto, "served", options, cache, make).expect("a driver")
    }

    fn start<S: Service + 'static>(
        driver: DriverChoice,
        folder: &str,
        options: &FolderOptions,
        cache: CacheLimits,
        make: impl Fn(Files) -> S + Send + Sync + 'static,
    ) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("shearwater-files-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("served")).expect("a temporary folder");
        fs::create_dir_all(path.join("outside")).expect("a temporary folder");
        fs::write(path.join("outside/canary"), CANARY).expect("a file");
        let folder = Folder::open_with(&path.join(folder), options).expect("a folder");
        let server = Server::new("127.0.0.1:0").workers(1).driver(driver).verbosity(Verbosity::Off);
        match server.start(move |_| make(folder.files_with(cache))) {
            Ok(running) => Some(Self { path, address: running.address(), running: Some(running) }),
            Err(Error::Start(StartError::Driver { .. })) => {
                fs::remove_dir_all(&path).expect("removed");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join("served").join(name)
    }

    /// Returns a path outside of the folder.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.path.join("outside").join(name)
    }

    /// Writes a file and creates its folders.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
        self
    }

    /// Sets a file's modification time.
    pub(crate) fn modified(&self, name: &str, time: SystemTime) {
        let file = File::options().write(true).open(self.at(name)).expect("a file");
        file.set_modified(time).expect("a time");
    }

    /// Waits for the file system's clock: changes within one tick have the same `ctime`.
    pub(crate) fn tick(&self) {
        let probe = File::create(self.outside("probe")).expect("a file");
        let changed = || probe.metadata().map(|meta| (meta.ctime(), meta.ctime_nsec())).expect("times");
        let before = changed();
        while changed() == before {
            probe.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
        }
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.at(name)).expect("a link");
        self
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns the status and body for `GET`.
    pub(crate) fn get(&self, target: &str) -> (u16, Vec<u8>) {
        let response = self.connect().request("GET", target, &[]);
        (response.status, response.body)
    }

    /// Returns the status for `GET`.
    pub(crate) fn status(&self, target: &str) -> u16 {
        self.get(target).0
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let running = self.running.take().expect("running until dropped");
        running.control().stop();
        let ended = running.wait();
        let removed = fs::remove_dir_all(&self.path);
        assert!((ended.is_ok() && removed.is_ok()) || std::thread::panicking(), "{ended:?}, {removed:?}");
    }
}
