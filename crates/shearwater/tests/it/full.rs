//! A server with as many connections as it may have.

use shearwater::{AcceptMode, App, DriverChoice, Server, Verbosity};
use testkit::TestClient;

use crate::local::local_server;
use crate::served::{Served, drivers, held_app, until};

const CONNECTIONS_MAX: usize = 8;

fn bounded(driver: DriverChoice, workers: usize, mode: AcceptMode) -> Server {
    local_server()
        .verbosity(Verbosity::Off)
        .driver(driver)
        .workers(workers)
        .accept_mode(mode)
        .connections_max(CONNECTIONS_MAX as u64)
}

fn answering() -> App {
    held_app().0
}

fn on_each(test: impl Fn(DriverChoice, usize, AcceptMode)) {
    for driver in drivers() {
        for (workers, mode) in
            [(1, AcceptMode::Reuseport), (2, AcceptMode::Reuseport), (2, AcceptMode::Dispatch)]
        {
            test(driver, workers, mode);
        }
    }
}

/// Whichever workers the kernel or the acceptor picks.
#[test]
fn serves_as_many_clients_as_configured() {
    on_each(|driver, workers, mode| {
        let served = Served::of(bounded(driver, workers, mode), answering());
        for _ in 0..10 {
            let mut clients: Vec<TestClient> = (0..CONNECTIONS_MAX).map(|_| served.connect()).collect();
            for client in &mut clients {
                let response = client.get("/");
                assert_eq!((response.text(), response.field("Connection")), ("answered", None));
            }
            drop(clients);
            until("all are closed", || served.control.totals().connections_open() == 0);
        }
        let totals = served.stop();
        assert_eq!((totals.connections_accepted, totals.hit_connections), (10 * CONNECTIONS_MAX as u64, 0));
    });
}

#[test]
fn idle_connections_make_room_for_others() {
    on_each(|driver, workers, mode| {
        let served = Served::of(bounded(driver, workers, mode), answering());
        let mut clients: Vec<TestClient> = (0..CONNECTIONS_MAX).map(|_| served.connect()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/").text(), "answered"));
        for _ in 0..2 * CONNECTIONS_MAX {
            let mut newcomer = served.connect();
            assert_eq!(newcomer.get("/").text(), "answered");
            clients.push(newcomer);
        }
        assert!(served.control.totals().connections_open() <= CONNECTIONS_MAX as u64);
    });
}

/// Nothing is closed under a request: the newcomer waits, wherever the end of one makes room.
#[test]
fn waits_for_the_end_of_a_request_at_any_worker() {
    if testkit::tls::skips("a handshake waits for room, too") {
        return;
    }
    on_each(|driver, workers, mode| {
        let served = Served::of(bounded(driver, workers, mode), answering());
        let mut parts: Vec<TestClient> = (0..CONNECTIONS_MAX).map(|_| served.connect()).collect();
        for client in &mut parts {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n");
        }
        until("all are accepted", || served.control.totals().connections_accepted == CONNECTIONS_MAX as u64);
        let mut newcomer = served.connect();
        newcomer.ask("GET", "/", &[]);
        until("it waits", || served.control.totals().hit_connections > 0);
        for client in &mut parts {
            client.send("\r\n");
            assert_eq!(client.response("GET").text(), "answered");
        }
        assert_eq!(newcomer.response("GET").text(), "answered");
    });
}
