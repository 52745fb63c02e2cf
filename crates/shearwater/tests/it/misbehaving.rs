//! Misbehaving handlers of each kind on each driver: the client's response, the log, and no leaks. `cargo e2e handlers`
//! tests the same in the release profile, with stack overflows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use faults::Alive;
use shearwater::tls::TlsProvider;
use shearwater::{
    App, Control, DriverChoice, ListenAddress, Notice, Request, Response, Timeouts, Totals, get,
};
use shearwater_engine::{Options, Running, Server};
use testkit::{TIMEOUT, TestClient};

use crate::local::{certificates, http2};
use crate::served::{Served, drivers, here, text};

#[path = "../../examples/trial_server/faults.rs"]
mod faults;

const KINDS: [&str; 3] = ["/sync", "/async", "/coroutine"];
/// Kinds of deferred handlers.
const LATER: [&str; 2] = ["/async", "/coroutine"];
/// A body larger than socket buffers.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// A server of the faults with one worker.
struct Faulty {
    running: Running,
    control: Arc<Control>,
    address: SocketAddr,
    alive: Alive,
}

impl Faulty {
    fn start(driver: DriverChoice, watchdog_ms: u64) -> Self {
        Self::with(driver, Options { watchdog_ms, ..Options::default() })
    }

    fn with(driver: DriverChoice, options: Options) -> Self {
        let alive = Alive::default();
        let state = alive.clone();
        let app = faults::add(App::with_state(move |_| state.clone()));
        let routes = app.build().expect("its routes are right");
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = if testkit::tls::is_on() { ListenAddress::Tls(free) } else { free.into() };
        let options = Options { listen: vec![address], workers: 1, driver, http2: http2(), ..options };
        let server = Server::bind(options).expect("a free port");
        let make = move |worker| routes.service(worker);
        let running = match testkit::tls::is_on() {
            true => server.start_secure(make, |_| TlsProvider::new(certificates())),
            false => server.start(make),
        };
        let running = running.expect("it starts");
        Self { control: running.control(), address: running.start_report().addresses[0], running, alive }
    }

    fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Returns the next notice.
    fn told(&self) -> Notice {
        self.running.notice(TIMEOUT).expect("a notice is sent")
    }

    /// Waits for a number of guards. Each check is a request of another client, which the worker serves meanwhile.
    #[track_caller]
    fn until_alive(&self, count: usize) {
        let deadline = Instant::now() + TIMEOUT;
        let mut other = self.connect();
        while other.get("/alive").text() != count.to_string() {
            assert!(Instant::now() < deadline, "{} are alive, not {count}", self.alive.count());
        }
    }

    /// Checks that other requests are served and nothing leaks; returns panics and errors.
    fn end(self) -> (u64, u64) {
        let totals = self.end_with_totals();
        (totals.handler_panics, totals.handler_errors)
    }

    fn end_with_totals(self) -> Totals {
        self.until_alive(0);
        self.control.stop();
        self.running.wait().expect("it ends normally").totals
    }
}

/// Calls `check` for each driver and kind, each with a new server.
fn each(kinds: &[&str], check: impl Fn(Faulty, &str)) {
    for driver in drivers() {
        for kind in kinds {
            check(Faulty::start(driver, 0), kind);
        }
    }
}

#[track_caller]
fn assert_500(served: &Faulty, target: &str) {
    let mut client = served.connect();
    let response = client.get(target);
    assert_eq!((response.status, response.text()), (500, "Internal Server Error\n"), "{target}");
    client.ends_after(&response);
}

#[track_caller]
fn assert_misbuilt(served: &Faulty, words: &str) {
    let told = served.told();
    assert!(matches!(&told, Notice::HandlerMisbuilt { message, .. } if message.contains(words)), "{told}");
}

#[track_caller]
fn assert_panicked(served: &Faulty) {
    let told = served.told();
    assert!(matches!(&told, Notice::HandlerPanicked { message, .. } if message == "asked to"), "{told}");
}

fn posting(client: &mut TestClient, target: &str) {
    client.ask("POST", target, &[&format!("Content-Length: {LARGE_BYTES}")]);
}

#[test]
fn responds_500_to_a_panic() {
    each(&KINDS, |served, kind| {
        assert_500(&served, &format!("{kind}/panic"));
        assert_panicked(&served);
        assert_eq!(served.end(), (1, 0));
    });
}

#[test]
fn cuts_off_the_response_of_a_late_panic() {
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/panic-behind"), &[]);
        assert_eq!(client.head().status, 200);
        assert_eq!(client.body_or_cut(), (b"begun".to_vec(), true));
        assert_panicked(&served);
        assert_eq!(served.end(), (1, 0));
    });
}

#[test]
fn responds_500_to_an_error() {
    each(&LATER, |served, kind| {
        assert_500(&served, &format!("{kind}/fails"));
        assert_misbuilt(&served, "no luck");
        assert_eq!(served.end(), (0, 1));
    });
}

#[test]
fn discards_a_body_that_is_not_wanted() {
    each(&KINDS, |served, kind| {
        let mut client = served.connect();
        posting(&mut client, &format!("{kind}/unread"));
        assert_eq!(client.send(vec![b'x'; LARGE_BYTES]).response("POST").text(), "unread");
        assert_eq!(client.get("/alive").text(), "0", "the connection stays open");
        assert_eq!(served.end(), (0, 0));
    });
}

#[test]
fn closes_the_connection_if_a_wanted_body_is_never_read() {
    if testkit::http2::skips("only the stream ends") {
        return;
    }
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        posting(&mut client, &format!("{kind}/ignores"));
        let response = client.send(vec![b'x'; LARGE_BYTES]).response("POST");
        assert_eq!((response.text(), response.field("Connection")), ("ignored", Some("close")));
        client.end_sending().is_ended();
        assert_eq!(served.end(), (0, 0));
    });
}

#[test]
fn discards_the_body_after_an_early_response() {
    if testkit::http2::skips("only the stream ends") {
        return;
    }
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        posting(&mut client, &format!("{kind}/early"));
        let response = client.response("POST");
        assert_eq!((response.text(), response.field("Connection")), ("early", Some("close")));
        client.send(vec![b'x'; LARGE_BYTES]).end_sending().is_ended();
        assert_eq!(served.end(), (0, 0));
    });
}

/// Closing with an unread or pending response resets the connection.
#[test]
fn drops_the_handler_of_a_client_that_resets() {
    each(&LATER, |served, kind| {
        for is_body_missing in [false, true] {
            let mut client = served.connect();
            client.ask("GET", "/alive", &[]);
            match is_body_missing {
                true => posting(&mut client, &format!("{kind}/waits")),
                false => drop(client.ask("GET", &format!("{kind}/waits"), &[])),
            }
            served.until_alive(1);
            drop(client);
            served.until_alive(0);
        }
        assert_eq!(served.end(), (0, 0));
    });
}

/// The reset is noticed although the stray byte pauses receiving.
#[test]
fn notices_a_reset_after_a_stray_byte() {
    if testkit::http2::skips("a stray byte is part of a frame") {
        return;
    }
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", "/alive", &[]).ask("GET", &format!("{kind}/waits"), &[]);
        served.until_alive(1);
        client.send("G");
        served.until_alive(1);
        drop(client);
        assert_eq!(served.end_with_totals().connections_broken, 1);
    });
}

/// Waits this long for the handler of a client that has closed, if nothing is sent to it.
#[test]
fn drops_the_handler_of_a_closed_client_in_time() {
    if testkit::http2::skips("a client that closes ends all its streams") {
        return;
    }
    for driver in drivers() {
        for kind in LATER {
            for behind in ["", "G", "GET / HTTP/1.1\r\n\r\n"] {
                let timeouts = Timeouts { half_closed_ms: 300, ..Timeouts::default() };
                let served = Faulty::with(driver, Options { timeouts, ..Options::default() });
                let mut client = served.connect();
                client.ask("GET", &format!("{kind}/waits"), &[]);
                served.until_alive(1);
                client.send(behind);
                served.until_alive(1);
                drop(client);
                assert_eq!(served.end_with_totals().hit_half_closed_ms, 1, "{kind} {behind:?}");
            }
        }
    }
}

/// A closed client is indistinguishable from a half-closed one until something is sent.
#[test]
fn notices_a_closed_client_when_sending() {
    if testkit::http2::skips("a client that closes ends all its streams") {
        return;
    }
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/streams"), &[]);
        assert_eq!(client.head().status, 200);
        client.end_sending();
        // Half closed, it is served.
        client.exactly(64);
        drop(client);
        assert_eq!(served.end(), (0, 0));
    });
}

#[test]
fn responds_500_if_a_handler_sets_the_length() {
    each(&["/sync"], |served, kind| {
        assert_500(&served, &format!("{kind}/length"));
        assert_misbuilt(&served, "Content-Length");
        assert_eq!(served.end(), (0, 1));
    });
}

#[test]
fn enforces_the_announced_length() {
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/length/5"), &[]);
        assert_eq!(client.head().field("Content-Length"), Some("10"));
        assert_eq!(client.body_or_cut(), (b"xxxxx".to_vec(), true));
        assert_misbuilt(&served, "less than it had announced");
        let mut client = served.connect();
        assert_eq!(client.get(&format!("{kind}/length/15")).text(), "xxxxxxxxxx");
        assert_eq!(client.get("/alive").text(), "0", "the connection stays open");
        assert_eq!(served.end(), (0, 2));
    });
}

#[test]
fn reports_a_blocked_worker() {
    for driver in drivers() {
        for kind in KINDS {
            let served = Faulty::start(driver, 20);
            let mut client = served.connect();
            assert_eq!(client.get(&format!("{kind}/blocks/1000")).text(), "blocked");
            let told = served.told();
            assert!(matches!(told, Notice::WorkerBlocked { worker: 0, times: 1, ms: 20.., .. }), "{told}");
            let named = format!("worker 0: the handler of GET {kind}/blocks/1000 has blocked it");
            assert_eq!(served.told().to_string(), named);
            assert_eq!(served.end(), (0, 0));
        }
    }
}

fn faulty_app() -> App {
    App::new()
        .route("/", get(text("fine")))
        .route(
            "/panic",
            get(|_: &Request, response: &mut Response| {
                response.field("X-Half", "done").text("half done");
                panic!("asked to");
            }),
        )
        .route(
            "/status",
            get(|_: &Request, response: &mut Response| {
                response.status(99);
            }),
        )
        .route(
            "/field",
            get(|request: &Request, response: &mut Response| {
                let (name, value) =
                    request.query_raw().and_then(|query| query.split_once('=')).expect("a field to set");
                response.text("kept back").field(name, value.replace("%0d%0a", "\r\n"));
            }),
        )
}

#[track_caller]
fn fails(client: &mut TestClient, target: &str) {
    let response = client.get(target);
    assert_eq!((response.status, response.text()), (500, "Internal Server Error\n"), "{target}");
    assert_eq!(response.field("X-Half"), None, "{target}");
    client.ends_after(&response);
}

#[test]
fn panic_costs_only_its_request() {
    let served = Served::app(faulty_app());
    let mut other = served.connect();
    assert_eq!(other.get("/").text(), "fine");
    fails(&mut served.connect(), "/panic");
    fails(&mut served.connect(), "/status");
    assert_eq!(other.get("/").text(), "fine");
    assert_eq!(served.connect().get("/").text(), "fine");
    let totals = served.stop();
    assert_eq!((totals.handler_panics, totals.handler_errors), (2, 0));
}

#[test]
fn survives_many_panics() {
    const CONNECTIONS: usize = 40;
    for workers in [1, 2] {
        let served = Served::of(here().workers(workers), faulty_app());
        let mut others: Vec<_> = (0..CONNECTIONS).map(|_| served.connect()).collect();
        for other in &mut others {
            fails(&mut served.connect(), "/panic");
            assert_eq!(other.get("/").text(), "fine");
        }
        for other in &mut others {
            assert_eq!(other.get("/").text(), "fine");
        }
        let totals = served.stop();
        assert_eq!(totals.handler_panics, CONNECTIONS as u64);
        assert_eq!(totals.requests, 3 * CONNECTIONS as u64);
    }
}

#[test]
fn responds_to_requests_pipelined_before_a_panic() {
    let served = Served::app(faulty_app());
    let mut client = served.connect();
    client.ask("GET", "/", &[]).ask("GET", "/panic", &[]).ask("GET", "/", &[]);
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(client.response("GET").status, 500);
    client.end_sending().is_ended();
}

#[test]
fn responds_500_if_a_handler_sets_an_invalid_header() {
    let served = Served::app(faulty_app());
    let bad = [
        "Content-Length=5",
        "content-length=5",
        "Transfer-Encoding=chunked",
        "CONNECTION=close",
        "Date=now",
        "X-Split=a%0d%0aSet-Cookie:b",
        "X(=a",
        "=a",
    ];
    for field in bad {
        fails(&mut served.connect(), &format!("/field?{field}"));
    }
    let mut client = served.connect();
    assert_eq!(client.get("/field?X-Good=a").field("X-Good"), Some("a"));
    assert_eq!(served.stop().handler_errors, bad.len() as u64);
}
