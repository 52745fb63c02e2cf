//! A server with metrics and an admin listener, on each driver.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use shearwater::{
    App, Call, DriverChoice, Error, Http2Options, Request, Response, Running, Server, StartError, Timeouts,
    Verbosity, get, later, post,
};
use shearwater_metrics::document::Status;
use shearwater_metrics::{Admin, AdminOptions, Metrics};
use testkit::http2::Http2Client;
use testkit::{TIMEOUT, TestClient};

use crate::parser::Exposition;

/// A free port.
pub(crate) const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// More bytes than two sockets buffer.
static LARGE: [u8; 32 * 1024 * 1024] = [b'x'; 32 * 1024 * 1024];

/// A running server, ended on drop.
pub(crate) struct Served {
    pub(crate) metrics: Metrics,
    pub(crate) running: Option<Running>,
    admin: Option<Admin>,
}

impl Served {
    /// Serves the test's app on a driver; returns `None` if that isn't available.
    fn start(driver: DriverChoice, timeouts: Timeouts) -> Option<Self> {
        let metrics = Metrics::new("1.2.3");
        let http2 = Http2Options { prior_knowledge: true, ..Http2Options::default() };
        let server = Server::bind("127.0.0.1:0").workers(2).driver(driver).timeouts(timeouts).http2(http2);
        let server = metrics.observe(server.verbosity(Verbosity::Off));
        let running = match server.start(app(&metrics)) {
            Ok(running) => running,
            Err(Error::Start(StartError::Driver { .. })) => return None,
            Err(error) => panic!("{error}"),
        };
        metrics.serving(&running);
        let options = AdminOptions { driver, ..AdminOptions::at(FREE) };
        let admin = Admin::start(options, &metrics).expect("it starts");
        Some(Self { metrics, running: Some(running), admin: Some(admin) })
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.running.as_ref().expect("it serves").address())
    }

    /// Connects a client of HTTP/2.
    pub(crate) fn connect_by_http2(&self) -> Http2Client<TcpStream> {
        let stream = TcpStream::connect(self.running.as_ref().expect("it serves").address());
        let stream = stream.expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        Http2Client::in_clear(stream).expect("it serves HTTP/2")
    }

    /// Connects to the admin listener.
    pub(crate) fn admin(&self) -> TestClient {
        TestClient::connect(self.admin_address())
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin.as_ref().and_then(Admin::address).expect("its address")
    }

    /// Returns all metrics.
    pub(crate) fn scrape(&self) -> Exposition {
        let accept = "Accept: application/openmetrics-text";
        Exposition::parse(self.admin().request("GET", "/metrics", &[accept]).text())
    }

    /// Returns the document.
    pub(crate) fn status(&self) -> Status {
        serde_json::from_slice(&self.admin().get("/status.json").body).expect("the document")
    }

    /// Scrapes until a condition holds.
    #[track_caller]
    pub(crate) fn until(&self, mut holds: impl FnMut(&Exposition) -> bool) -> Exposition {
        let start = Instant::now();
        loop {
            let scraped = self.scrape();
            if holds(&scraped) {
                return scraped;
            }
            assert!(start.elapsed() < TIMEOUT, "it never comes to that");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.control().stop();
            assert!(running.wait_for_control().is_ok() || std::thread::panicking());
        }
        self.admin.take().into_iter().for_each(Admin::end);
    }
}

fn app(metrics: &Metrics) -> App {
    let mut app = App::new()
        .route(
            "/",
            get(|_: &Request, response: &mut Response| {
                response.text("hello");
            }),
        )
        .route(
            "/",
            post(|_: &Request, response: &mut Response| {
                response.status(303).field("Location", "/");
            }),
        )
        .route("/panic", get(|_: &Request, _: &mut Response| panic!("as the test wants it")))
        .route(
            "/invalid",
            get(|_: &Request, response: &mut Response| {
                response.field("Content-Length", "1");
            }),
        )
        .route(
            "/large",
            get(|_: &Request, response: &mut Response| {
                response.body_static(&LARGE);
            }),
        );
    for name in ["one", "two"] {
        let tag = metrics.site_tag(name);
        app = app.route(
            &format!("/{name}"),
            get(move |_: &Request, response: &mut Response| {
                response.exchange_tag(tag).text(name);
            }),
        );
    }
    let tag = metrics.site_tag("three");
    let panics = move |_: &Request, response: &mut Response| {
        response.exchange_tag(tag);
        panic!("as the test wants it")
    };
    let late = async move |call: &mut Call| {
        call.response().exchange_tag(tag);
        call.sleep(Duration::from_millis(1)).await;
        "late"
    };
    let app = app.scope("/three", |app| app.route("/panic", get(panics)).route("/late", get(later(late))));
    let tag = metrics.site_tag("four");
    app.route(
        "/four",
        get(later(async move |call: &mut Call| {
            call.response().exchange_tag(tag).text("four");
        })),
    )
}

/// Calls a test for each available driver.
pub(crate) fn on_each_driver(timeouts: Timeouts, check: impl Fn(Served)) {
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let served = drivers.into_iter().filter_map(|driver| Served::start(driver, timeouts));
    assert!(served.map(check).count() > 0, "no driver");
}
