//! A server of sites with two temporary folders, on each driver.

use std::net::SocketAddr;
use std::path::PathBuf;

use shearwater::{ClientHeader, DriverChoice, Error, Running, StartError, TrustedProxies, Verbosity};
use shearwater_files::{CacheLimits, Folder};
use shearwater_site::{Content, ErrorPage, Fixed, Headers, Options, Redirect, Route, Site, Sites};
use testkit::{ClientResponse, TestClient, TestFolder};

use crate::local::local_server;

/// Returns a site of the first folder.
pub(crate) fn site() -> Site {
    Site { content: Content::Files(0), ..Site::default() }
}

pub(crate) fn hosts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns a route with the site's content.
pub(crate) fn route(path: &str) -> Route {
    Route { path: path.to_owned(), ..Route::default() }
}

/// Returns a route with a fixed response.
pub(crate) fn says(path: &str, text: &str) -> Route {
    Route { content: Some(fixed(200, text)), ..route(path) }
}

pub(crate) fn fixed(status: u16, text: &str) -> Content {
    Content::Fixed(Fixed { status, media_type: "text/plain".to_owned(), body: text.into() })
}

pub(crate) fn redirect(from: &str, to: &str, status: u16) -> Redirect {
    Redirect { from: from.to_owned(), to: to.to_owned(), status }
}

pub(crate) fn headers(set: &[(&str, &str)], remove: &[&str]) -> Headers {
    let set = set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Headers { set, remove: hosts(remove) }
}

pub(crate) fn page(status: u16, path: &str) -> ErrorPage {
    ErrorPage { status, path: path.to_owned() }
}

/// Creates the folders `one/` and `two/` with these files.
pub(crate) fn laid_out(files: &[(&str, &str)]) -> TestFolder {
    let folder = TestFolder::new();
    for name in ["one", "two"] {
        std::fs::create_dir(folder.at(name)).expect("a folder");
    }
    for (name, content) in files {
        folder.file(name, content);
    }
    folder
}

/// Opens sites over these folders, in the system's caches or on a slow disk.
pub(crate) fn opened(folder: &TestFolder, is_slow: bool, sites: &[Site]) -> Sites {
    let open = |name| {
        let opened = Folder::open(&folder.at(name)).expect("a folder");
        if is_slow { opened.with_slow_disk(|_| ()) } else { opened }
    };
    let folders = ["one", "two"].map(open).into();
    let options = Options { folders, cache: CacheLimits::default(), sites: sites.to_vec() };
    Sites::new(options).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Two folders and a server, removed when dropped.
pub(crate) struct SitesServer {
    folder: TestFolder,
    running: Option<Running>,
    address: SocketAddr,
}

/// Runs a test on each available driver, with folders in the system's caches and on a slow disk. The folders 0 and 1 are `one/` and `two/`.
pub(crate) fn on_each_driver(files: &[(&str, &str)], sites: &[Site], test: impl Fn(&SitesServer)) {
    start_on_each_driver(files, sites, |sites| (sites, None), test);
}

/// As [`on_each_driver`], behind a trusted proxy: `X-Forwarded-Proto` says whether a request came by TLS.
pub(crate) fn behind_a_proxy(
    files: &[(&str, &str)],
    sites: &[Site],
    change: impl Fn(&mut Sites),
    test: impl Fn(&SitesServer),
) {
    let make = |mut sites: Sites| {
        change(&mut sites);
        (sites, Some(TrustedProxies::new(["127.0.0.0/8"]).expect("a network")))
    };
    start_on_each_driver(files, sites, make, test);
}

fn start_on_each_driver(
    files: &[(&str, &str)],
    sites: &[Site],
    make: impl Fn(Sites) -> (Sites, Option<TrustedProxies>),
    test: impl Fn(&SitesServer),
) {
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let each = drivers.into_iter().flat_map(|driver| [false, true].map(|is_slow| (driver, is_slow)));
    let served =
        each.filter_map(|(driver, is_slow)| SitesServer::start(driver, is_slow, files, sites, &make));
    let tested = served.map(|served| test(&served)).count();
    assert!(tested > 0, "there is a driver");
}

impl SitesServer {
    fn start(
        driver: DriverChoice,
        is_slow: bool,
        files: &[(&str, &str)],
        sites: &[Site],
        make: impl Fn(Sites) -> (Sites, Option<TrustedProxies>),
    ) -> Option<Self> {
        let folder = laid_out(files);
        let (sites, proxies) = make(opened(&folder, is_slow, sites));
        let server = local_server().workers(1).driver(driver).verbosity(Verbosity::Off);
        let server = match proxies {
            Some(proxies) => server.trusted_proxies(proxies).client_header(ClientHeader::XForwardedFor),
            None => server,
        };
        match server.start_service(move |_| sites.service()) {
            Ok(running) => Some(Self { folder, address: running.address(), running: Some(running) }),
            Err(Error::Start(StartError::Driver { .. })) => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Requests a path of `localhost`, or of the host in `fields`.
    pub(crate) fn get(&self, target: &str, fields: &[&str]) -> ClientResponse {
        self.connect().request("GET", target, fields)
    }

    /// Requests a path of a host, and returns status and body.
    pub(crate) fn of_host(&self, host: &str, target: &str) -> (u16, String) {
        let response = self.get(target, &[&format!("Host: {host}")]);
        (response.status, response.text().to_owned())
    }
}

impl Drop for SitesServer {
    fn drop(&mut self) {
        let running = self.running.take().expect("only dropping takes it");
        running.control().stop();
        let ended = running.wait();
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}
