//! Misbehaving handlers of each kind on each driver: the client's response, the log, and no leaks. `cargo e2e handlers`
//! tests the same in the release profile, with stack overflows.

use std::io::Read;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use shearwater::{App, Control, DriverChoice, Notice, Timeouts, Totals};
use shearwater_engine::{Options, Running, Server};

use crate::client::{Client, WAIT_MAX};
use crate::served::drivers;

#[path = "../../examples/trial_server/faults.rs"]
mod faults;

use faults::Alive;

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
        let mut app = App::new();
        faults::add(&mut app, &alive);
        let routes = app.build().expect("its routes are right");
        let options = Options {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
            workers: 1,
            driver,
            ..options
        };
        let server = Server::bind(options).expect("a free port");
        let running = server.start(move |worker| routes.service(worker)).expect("it starts");
        Self { control: running.control(), address: running.start_report().addresses[0], running, alive }
    }

    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns the next notice.
    fn told(&self) -> Notice {
        self.running.notice(WAIT_MAX).expect("a notice is sent")
    }

    /// Waits for a number of guards. Each check is a request of another client, which the worker serves meanwhile.
    #[track_caller]
    fn until_alive(&self, count: usize) {
        let deadline = Instant::now() + WAIT_MAX;
        let mut other = self.connect();
        while other.request("GET", "/alive", &[]).text() != count.to_string() {
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
    let response = client.request("GET", target, &[]);
    assert_eq!((response.status, response.text()), (500, "Internal Server Error\n"), "{target}");
    assert_eq!(response.field("Connection"), Some("close"), "{target}");
    client.is_ended();
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

fn posting(client: &mut Client, target: &str) {
    client.ask("POST", target, &[&format!("Content-Length: {LARGE_BYTES}")]);
}

#[test]
fn a_panic_is_a_500() {
    each(&KINDS, |served, kind| {
        assert_500(&served, &format!("{kind}/panic"));
        assert_panicked(&served);
        assert_eq!(served.end(), (1, 0));
    });
}

#[test]
fn a_panic_behind_the_head_cuts_the_response_off() {
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/panic-behind"), &[]);
        assert_eq!(client.head().status, 200);
        assert_eq!(client.rest(), b"5\r\nbegun\r\n", "no last chunk");
        assert_panicked(&served);
        assert_eq!(served.end(), (1, 0));
    });
}

#[test]
fn an_error_is_a_500() {
    each(&LATER, |served, kind| {
        assert_500(&served, &format!("{kind}/fails"));
        assert_misbuilt(&served, "no luck");
        assert_eq!(served.end(), (0, 1));
    });
}

#[test]
fn a_body_that_nobody_reads_is_read_all_the_same() {
    each(&KINDS, |served, kind| {
        let mut client = served.connect();
        posting(&mut client, &format!("{kind}/unread"));
        assert_eq!(client.send(vec![b'x'; LARGE_BYTES]).response("POST").text(), "unread");
        assert_eq!(client.request("GET", "/alive", &[]).text(), "0", "the connection stays open");
        assert_eq!(served.end(), (0, 0));
    });
}

#[test]
fn a_body_that_a_handler_wanted_and_never_reads_costs_the_connection() {
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
fn an_response_before_the_body_arrives_and_the_rest_is_thrown_away() {
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
fn a_reset_behind_a_stray_byte_drops_the_handler() {
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
fn a_closed_client_drops_the_handler_in_time() {
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
fn who_has_closed_is_noticed_when_it_is_sent_something() {
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/streams"), &[]);
        assert_eq!(client.head().status, 200);
        client.stream.get_ref().shutdown(Shutdown::Write).expect("our side ends");
        let mut more = [0; 64];
        client.stream.read_exact(&mut more).expect("half closed, it is served");
        drop(client);
        assert_eq!(served.end(), (0, 0));
    });
}

#[test]
fn a_length_of_its_own_is_a_500() {
    each(&["/sync"], |served, kind| {
        assert_500(&served, &format!("{kind}/length"));
        assert_misbuilt(&served, "Content-Length");
        assert_eq!(served.end(), (0, 1));
    });
}

#[test]
fn less_than_was_announced_is_cut_off_and_more_is_left_out() {
    each(&LATER, |served, kind| {
        let mut client = served.connect();
        client.ask("GET", &format!("{kind}/length/5"), &[]);
        assert_eq!(client.head().field("Content-Length"), Some("10"));
        assert_eq!(client.rest(), b"xxxxx");
        assert_misbuilt(&served, "less than it had announced");
        let mut client = served.connect();
        assert_eq!(client.request("GET", &format!("{kind}/length/15"), &[]).text(), "xxxxxxxxxx");
        assert_eq!(client.request("GET", "/alive", &[]).text(), "0", "the connection stays open");
        assert_eq!(served.end(), (0, 2));
    });
}

#[test]
fn a_blocked_worker_is_told_of_and_goes_on() {
    for driver in drivers() {
        for kind in KINDS {
            let served = Faulty::start(driver, 20);
            let mut client = served.connect();
            assert_eq!(client.request("GET", &format!("{kind}/blocks/1000"), &[]).text(), "blocked");
            let told = served.told();
            assert!(matches!(told, Notice::WorkerBlocked { worker: 0, .. }), "{told}");
            assert_eq!(served.end(), (0, 0));
        }
    }
}
