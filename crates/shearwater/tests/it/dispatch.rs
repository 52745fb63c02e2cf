//! Accept mode `dispatch`: one thread accepts for all workers.

use std::sync::Arc;

use shearwater::engine::Request;
use shearwater::{AcceptMode, DriverChoice, Response, Running, Server, Service, Verbosity};
use testkit::TestClient;

use crate::local::local_server;
use crate::served::{Gate, Served, drivers, held_app, until};

/// A drain time longer than any test.
const LONG_MS: u64 = 60_000;

fn dispatching(driver: DriverChoice, workers: usize) -> Server {
    local_server().verbosity(Verbosity::Off).driver(driver).workers(workers).accept_mode(AcceptMode::Dispatch)
}

/// Responds with the worker's number.
struct Number(usize);

impl Service for Number {
    fn respond(&self, _: &Request<'_>, response: &mut Response<'_>) {
        response.text(&self.0.to_string());
    }
}

#[test]
fn spreads_connections_evenly() {
    const WORKERS: usize = 4;
    const WAVES: usize = 20;
    const WAVE: usize = 500;
    for driver in drivers() {
        let served = Served::running(dispatching(driver, WORKERS).start_service(Number).expect("starts"));
        let mut responded_by = [0; WORKERS];
        for _ in 0..WAVES {
            let mut clients: Vec<TestClient> = (0..WAVE).map(|_| served.connect()).collect();
            for client in &mut clients {
                let worker: usize = client.get("/").text().parse().expect("a number");
                responded_by[worker] += 1;
            }
        }
        let even = WAVES * WAVE / WORKERS;
        // Differs by one batch at most, if an inbox was ever full.
        assert!(responded_by.iter().all(|count: &usize| count.abs_diff(even) <= 64), "{responded_by:?}");
        let totals = served.stop();
        assert_eq!(totals.connections_accepted, (WAVES * WAVE) as u64);
    }
}

/// A server whose workers are all blocked, and the clients that block them.
fn held_up(driver: DriverChoice, workers: usize) -> (Served, Arc<Gate>, Vec<TestClient>) {
    let (app, gate) = held_app();
    let served = Served::of(dispatching(driver, workers), app);
    // Distributed round-robin: each worker gets one.
    let mut holders: Vec<TestClient> = (0..workers).map(|_| served.connect()).collect();
    for holder in &mut holders {
        holder.ask("GET", "/wait", &[]);
    }
    gate.is_entered(workers);
    (served, gate, holders)
}

/// More clients than two inboxes hold, so that some wait in the kernel's queue.
fn crowd(served: &Served) -> Vec<TestClient> {
    let mut clients: Vec<TestClient> = (0..700).map(|_| served.connect()).collect();
    for client in &mut clients {
        client.ask("GET", "/", &[]);
    }
    clients
}

#[test]
fn connections_wait_while_every_inbox_is_full() {
    if testkit::tls::skips("a worker that is blocked does no handshake") {
        return;
    }
    for driver in drivers() {
        let (served, gate, mut holders) = held_up(driver, 2);
        let mut clients = crowd(&served);
        until("the inboxes are full", || served.control.totals().hit_inbox > 0);
        gate.open();
        for client in &mut clients {
            assert_eq!(client.response("GET").text(), "answered");
        }
        for holder in &mut holders {
            assert_eq!(holder.response("GET").text(), "waited");
        }
        let totals = served.stop();
        assert_eq!((totals.requests, totals.connections_accepted), (702, 702));
        assert!(totals.limits().any(|(name, times)| name == "INBOX_MAX" && times > 0));
    }
}

#[test]
fn drain_responds_to_connections_in_inboxes_and_in_the_backlog() {
    if testkit::tls::skips("a worker that is blocked does no handshake") {
        return;
    }
    for driver in drivers() {
        let (served, gate, mut holders) = held_up(driver, 2);
        let mut clients = crowd(&served);
        until("the inboxes are full", || served.control.totals().hit_inbox > 0);
        served.control.drain(LONG_MS);
        gate.open();
        for client in &mut clients {
            assert_eq!(client.response("GET").text(), "answered");
            client.end_sending().is_ended();
        }
        for holder in &mut holders {
            assert_eq!(holder.response("GET").text(), "waited");
            holder.end_sending().is_ended();
        }
        let totals = served.wait();
        assert_eq!((totals.requests, totals.connections_accepted), (702, 702));
        assert_eq!((totals.connections_closed, totals.connections_broken), (702, 0));
    }
}

#[test]
fn counts_every_closed_connection() {
    const CLIENTS: usize = 4;
    const EACH: usize = 300;
    for driver in drivers() {
        let served = Served::running(dispatching(driver, 3).start_service(Number).expect("starts"));
        let address = served.address;
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(move || {
                    for _ in 0..EACH {
                        let mut client = TestClient::connect(address);
                        assert_eq!(client.request("GET", "/", &["Connection: close"]).status, 200);
                        client.is_ended();
                    }
                });
            }
        });
        let totals = served.stop();
        let expected = (CLIENTS * EACH) as u64;
        assert_eq!((totals.connections_accepted, totals.connections_closed), (expected, expected));
        assert_eq!(totals.hit_connections, 0);
    }
}

#[test]
fn start_report_names_the_accept_mode() {
    for mode in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
        let server = local_server().verbosity(Verbosity::Off).workers(2).accept_mode(mode);
        let running: Running = server.start_service(Number).expect("starts");
        assert_eq!(running.start_report().accept, mode);
        running.control().stop();
        running.wait().expect("ends normally");
    }
    assert_eq!(AcceptMode::default().to_string(), "reuseport");
    assert_eq!(AcceptMode::Dispatch.to_string(), "dispatch");
}
