//! Draining, stopping, and real signals to a server process.

use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shearwater::{App, Call, Error, Request, Response, Timeouts, Verbosity, get, later};
use testkit::{TIMEOUT, TestClient, until_refused};

use crate::process::{self, Process};
use crate::served::{LARGE, Served, drivers, held_app, here, text};

/// A drain time longer than any test.
const LONG_MS: u64 = 60_000;

#[test]
fn drain_closes_idle_connections_in_order() {
    let (app, _) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut used = served.connect();
    assert_eq!(used.get("/").text(), "answered");
    let mut silent = served.connect();
    served.control.drain(LONG_MS);
    silent.is_ended();
    used.is_ended();
    let totals = served.wait();
    assert_eq!((totals.requests, totals.connections_accepted, totals.connections_closed), (1, 2, 2));
}

#[test]
fn drain_responds_to_busy_and_queued_connections() {
    if testkit::tls::skips("a worker that is blocked does no handshake") {
        return;
    }
    let (app, gate) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut known = served.connect();
    assert_eq!(known.get("/").text(), "answered");
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    // The only worker is blocked: these wait in the kernel, one in a socket, the others in the accept queue.
    known.ask("GET", "/", &[]);
    let mut queued: Vec<TestClient> = (0..10).map(|_| served.connect()).collect();
    for client in &mut queued {
        client.ask("GET", "/", &[]);
    }
    served.control.drain(LONG_MS);
    gate.open();
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
fn drain_responds_to_pipelined_requests() {
    if testkit::tls::skips("a worker that is blocked does no handshake") {
        return;
    }
    let (app, gate) = held_app();
    let served = Served::of(here().timeouts(Timeouts { drain_idle_ms: 1, ..Timeouts::default() }), app);
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    let mut queued = served.connect();
    queued.ask("GET", "/", &[]).ask("GET", "/", &[]).ask("GET", "/", &[]);
    served.control.drain(LONG_MS);
    gate.open();
    assert_eq!(busy.response("GET").text(), "waited");
    for _ in 0..3 {
        assert_eq!(queued.response("GET").text(), "answered");
    }
    queued.end_sending().is_ended();
}

#[test]
fn drain_sends_connection_close() {
    if testkit::http2::skips("a connection ends by GOAWAY") {
        return;
    }
    let (app, _) = held_app();
    let timeouts = Timeouts { drain_idle_ms: LONG_MS, ..Timeouts::default() };
    let served = Served::of(here().timeouts(timeouts), app);
    let mut client = served.connect();
    assert_eq!(client.get("/").field("Connection"), None);
    served.control.drain(LONG_MS);
    until_refused(served.address);
    let last = client.get("/");
    assert_eq!((last.text(), last.field("Connection")), ("answered", Some("close")));
    client.end_sending().is_ended();
    served.wait();
}

/// The client's kernel has acknowledged the response, so a close can't discard it.
#[test]
fn drain_does_not_wait_for_clients_to_close() {
    if testkit::http2::skips("a connection ends by GOAWAY") {
        return;
    }
    for driver in drivers() {
        let (app, _) = held_app();
        let timeouts = Timeouts { drain_idle_ms: LONG_MS, linger_ms: LONG_MS, ..Timeouts::default() };
        let served = Served::of(here().driver(driver).timeouts(timeouts), app);
        let mut client = served.connect();
        assert_eq!(client.get("/").field("Connection"), None);
        let begun = Instant::now();
        served.control.drain(LONG_MS);
        until_refused(served.address);
        assert_eq!(client.get("/").field("Connection"), Some("close"));
        let totals = served.wait();
        assert!(begun.elapsed() < TIMEOUT, "{:?}", begun.elapsed());
        assert_eq!((totals.hit_linger_ms, totals.connections_cut_off), (1, 0));
        client.is_ended();
    }
}

#[test]
fn drain_without_connections_ends_at_once() {
    for workers in [1, 3] {
        let (app, _) = held_app();
        let served = Served::of(here().workers(workers), app);
        served.control.drain(LONG_MS);
        assert_eq!(served.wait().connections_accepted, 0);
    }
}

#[test]
fn drain_completes_a_download() {
    let (app, _) = held_app();
    let served = Served::app(app);
    let mut client = served.connect();
    let head = client.ask("GET", "/large", &[]).head();
    assert_eq!(head.field("Content-Length"), Some(LARGE.len().to_string().as_str()));
    served.control.drain(LONG_MS);
    until_refused(served.address);
    let body = client.body();
    assert!(body == LARGE, "{} bytes", body.len());
    client.is_ended();
    served.wait();
}

#[test]
fn drain_ends_at_its_deadline() {
    if testkit::tls::skips("a connection that is cut off ends without a close_notify") {
        return;
    }
    let (app, _) = held_app();
    let served = Served::app(app);
    let mut stuck = served.connect();
    stuck.ask("GET", "/large", &[]).head();
    served.control.drain(1);
    assert_eq!(served.wait().connections_closed, 1);
    let (body, is_cut) = stuck.body_or_cut();
    assert!(is_cut && body.len() < LARGE.len());
}

#[test]
fn drain_abandons_a_stuck_worker() {
    let (app, gate) = held_app();
    let running = here().start(app).expect("starts");
    let (address, control) = (running.address(), running.control());
    let mut busy = TestClient::connect(address);
    busy.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    control.drain(1);
    let error = running.wait().expect_err("a worker is stuck");
    assert!(matches!(&error, Error::Failed(failure) if failure.worker == Some(0)), "{error:?}");
    assert!(error.to_string().contains("handler"), "{error}");
    gate.open();
    assert_eq!(busy.response("GET").text(), "waited");
}

#[test]
fn stop_closes_all_connections() {
    if testkit::tls::skips("a connection that is cut off ends without a close_notify") {
        return;
    }
    let (app, gate) = held_app();
    let timeouts = Timeouts { drain_idle_ms: LONG_MS, ..Timeouts::default() };
    let served = Served::of(here().timeouts(timeouts), app);
    let mut idle = served.connect();
    assert_eq!(idle.get("/").status, 200);
    let mut stuck = served.connect();
    stuck.ask("GET", "/large", &[]).head();
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    let control = std::sync::Arc::clone(&served.control);
    control.drain(LONG_MS);
    control.stop();
    gate.open();
    let totals = served.wait();
    assert_eq!((totals.requests, totals.connections_accepted, totals.connections_closed), (3, 3, 3));
    idle.is_ended();
    let (body, is_cut) = stuck.body_or_cut();
    assert!(is_cut && body.len() < LARGE.len());
}

/// Runs the server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let (order, ordered) = sync_channel(1);
    let app = App::new()
        .route(
            "/drain",
            get(move |_: &Request, response: &mut Response| {
                order.send(()).expect("the process waits for it");
                response.text("drains");
            }),
        )
        .route("/", get(text("answered")))
        .route(
            "/never",
            get(later(async |call: &mut Call| {
                call.sleep(Duration::from_secs(86_400)).await;
            })),
        );
    let server = here().verbosity(Verbosity::Off).drain_ms(86_400_000).handle_signals();
    let running = server.start(app).expect("starts");
    process::serves(running.address());
    let control = running.control();
    thread::spawn(move || ordered.recv().map(|()| control.drain(86_400_000)));
    running.wait().expect("ends normally");
    process::has_ended();
}

/// A client whose request gets no response.
fn waiting(process: &Process) -> TestClient {
    let mut client = TestClient::connect(process.address);
    assert_eq!(client.get("/").text(), "answered");
    client.ask("GET", "/never", &[]);
    client
}

/// The server drains by the first signal or by the program.
#[test]
fn second_signal_stops_and_third_has_its_previous_effect() {
    for signal in [Signal::INT, Signal::TERM] {
        for drained_by_program in [false, true] {
            let mut process = Process::start("drain::process");
            let _client = waiting(&process);
            if drained_by_program {
                assert_eq!(TestClient::connect(process.address).get("/drain").text(), "drains");
            } else {
                process.signal(signal);
            }
            until_refused(process.address);
            process.signal(signal);
            process.server_ended();
            // The shell of a background job ignores SIGINT for all its processes.
            process.signal(Signal::TERM);
            assert_eq!(process.end().signal(), Some(Signal::TERM.as_raw()), "{drained_by_program}");
        }
    }
}
