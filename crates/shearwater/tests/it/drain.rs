//! Draining completes requests in flight; stopping doesn't wait.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use shearwater::{App, Error, Request, Response, Timeouts};

use crate::client::Client;
use crate::served::{Served, drivers, here};

/// A drain time longer than any test.
const LONG_MS: u64 = 60_000;

/// Maximum wait for immediate events.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Holds the handler of `/wait`.
struct Hold {
    entered: Receiver<()>,
    release: SyncSender<()>,
}

impl Hold {
    /// The handler is running and waits.
    fn is_entered(&self) {
        self.entered.recv_timeout(WAIT_MAX).expect("the handler is called");
    }

    fn release(&self) {
        self.release.send(()).expect("the handler waits");
    }
}

fn held_app() -> (App, Hold) {
    let (entering, entered) = sync_channel(1);
    let (release, released) = sync_channel(1);
    let released = Mutex::new(released);
    let mut app = App::new();
    app.get("/wait", move |_: &Request, response: &mut Response| {
        entering.send(()).expect("the test receives");
        released.lock().expect("unpoisoned").recv_timeout(WAIT_MAX).expect("the test releases");
        response.text("waited");
    });
    app.get("/", |_: &Request, response: &mut Response| {
        response.text("answered");
    });
    app.get("/large", |_: &Request, response: &mut Response| {
        response.body_static(&LARGE);
    });
    (app, Hold { entered, release })
}

/// More bytes than two sockets buffer.
static LARGE: [u8; 64 * 1024 * 1024] = [b'x'; 64 * 1024 * 1024];

/// Waits until the listeners are closed, which shows that the drain has begun.
fn until_refused(address: SocketAddr) {
    let begun = Instant::now();
    while begun.elapsed() < WAIT_MAX {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            _ => std::thread::yield_now(),
        }
    }
    panic!("the listeners are not closed");
}

#[test]
fn a_drain_closes_idle_connections_in_order() {
    let (app, _hold) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut used = served.connect();
    assert_eq!(used.request("GET", "/", &[]).text(), "answered");
    let mut silent = served.connect();
    served.control.drain(LONG_MS);
    silent.is_ended();
    used.is_ended();
    let totals = served.wait();
    assert_eq!((totals.requests, totals.connections_accepted, totals.connections_closed), (1, 2, 2));
}

#[test]
fn a_drain_responses_busy_and_queued_connections() {
    let (app, hold) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut known = served.connect();
    assert_eq!(known.request("GET", "/", &[]).text(), "answered");
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    hold.is_entered();
    // The only worker is blocked: these wait in the kernel, one in a socket, the others in the accept queue.
    known.ask("GET", "/", &[]);
    let mut queued: Vec<Client> = (0..10).map(|_| served.connect()).collect();
    for client in &mut queued {
        client.ask("GET", "/", &[]);
    }
    served.control.drain(LONG_MS);
    hold.release();
    assert_eq!(busy.response("GET").text(), "waited");
    busy.end_sending().is_ended();
    assert_eq!(known.response("GET").text(), "answered");
    known.end_sending().is_ended();
    for client in &mut queued {
        assert_eq!(client.response("GET").text(), "answered");
        client.end_sending().is_ended();
    }
    let totals = served.wait();
    assert_eq!((totals.requests, totals.connections_accepted, totals.connections_closed), (13, 12, 12));
    assert_eq!((totals.requests_refused, totals.connections_broken), (0, 0));
}

#[test]
fn a_drain_responses_every_pipelined_request_that_was_received() {
    let (app, hold) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    hold.is_entered();
    let mut queued = served.connect();
    queued.ask("GET", "/", &[]).ask("GET", "/", &[]).ask("GET", "/", &[]);
    served.control.drain(LONG_MS);
    hold.release();
    assert_eq!(busy.response("GET").text(), "waited");
    for _ in 0..3 {
        assert_eq!(queued.response("GET").text(), "answered");
    }
    queued.end_sending().is_ended();
}

#[test]
fn the_last_response_of_a_drain_says_that_it_is_the_last() {
    let (app, _hold) = held_app();
    let timeouts = Timeouts { drain_idle_ms: LONG_MS, ..Timeouts::default() };
    let served = Served::of(here().timeouts(timeouts), app);
    let mut client = served.connect();
    assert_eq!(client.request("GET", "/", &[]).field("Connection"), None);
    served.control.drain(LONG_MS);
    until_refused(served.address);
    let last = client.request("GET", "/", &[]);
    assert_eq!((last.text(), last.field("Connection")), ("answered", Some("close")));
    client.end_sending().is_ended();
    served.wait();
}

/// The client's kernel has acknowledged the response, so a close can't discard it.
#[test]
fn a_drain_does_not_wait_for_a_client_that_keeps_its_socket_open() {
    for driver in drivers() {
        let (app, _hold) = held_app();
        let timeouts = Timeouts { drain_idle_ms: LONG_MS, linger_ms: LONG_MS, ..Timeouts::default() };
        let served = Served::of(here().driver(driver).timeouts(timeouts), app);
        let mut client = served.connect();
        assert_eq!(client.request("GET", "/", &[]).field("Connection"), None);
        let begun = Instant::now();
        served.control.drain(LONG_MS);
        until_refused(served.address);
        assert_eq!(client.request("GET", "/", &[]).field("Connection"), Some("close"));
        let totals = served.wait();
        assert!(begun.elapsed() < WAIT_MAX, "{:?}", begun.elapsed());
        assert_eq!((totals.hit_linger_ms, totals.connections_cut_off), (1, 0));
        client.is_ended();
    }
}

#[test]
fn a_drain_with_nobody_there_ends_at_once() {
    for workers in [1, 3] {
        let (app, _hold) = held_app();
        let served = Served::of(here().workers(workers), app);
        served.control.drain(LONG_MS);
        assert_eq!(served.wait().connections_accepted, 0);
    }
}

#[test]
fn a_drain_lets_a_download_finish() {
    let (app, _hold) = held_app();
    let served = Served::app(app);
    let mut client = served.connect();
    let head = client.ask("GET", "/large", &[]).head();
    assert_eq!(head.field("Content-Length"), Some(LARGE.len().to_string().as_str()));
    served.control.drain(LONG_MS);
    until_refused(served.address);
    let rest = client.rest();
    assert!(rest == LARGE, "{} bytes", rest.len());
    served.wait();
}

#[test]
fn a_drain_ends_at_its_deadline() {
    let (app, _hold) = held_app();
    let served = Served::app(app);
    let mut stuck = served.connect();
    stuck.ask("GET", "/large", &[]).head();
    served.control.drain(1);
    assert_eq!(served.wait().connections_closed, 1);
    assert!(stuck.rest().len() < LARGE.len());
}

#[test]
fn a_handler_that_does_not_return_is_told_and_does_not_hold_up_the_end() {
    let (app, hold) = held_app();
    let running = here().start_app(app).expect("starts");
    let (address, control) = (running.address(), running.control());
    let mut busy = Client::connect(address);
    busy.ask("GET", "/wait", &[]);
    hold.is_entered();
    control.drain(1);
    let error = running.wait().expect_err("a worker is stuck");
    assert!(matches!(&error, Error::Failed(failure) if failure.worker == Some(0)), "{error:?}");
    assert!(error.to_string().contains("handler"), "{error}");
    hold.release();
    assert_eq!(busy.response("GET").text(), "waited");
}

#[test]
fn a_stop_ends_everything_at_once() {
    let (app, hold) = held_app();
    let timeouts = Timeouts { drain_idle_ms: LONG_MS, ..Timeouts::default() };
    let served = Served::of(here().timeouts(timeouts), app);
    let mut idle = served.connect();
    assert_eq!(idle.request("GET", "/", &[]).status, 200);
    let mut stuck = served.connect();
    stuck.ask("GET", "/large", &[]).head();
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    hold.is_entered();
    let control = std::sync::Arc::clone(&served.control);
    control.drain(LONG_MS);
    control.stop();
    hold.release();
    let totals = served.wait();
    assert_eq!((totals.requests, totals.connections_accepted, totals.connections_closed), (3, 3, 3));
    idle.is_ended();
    assert!(stuck.rest().len() < LARGE.len());
}
