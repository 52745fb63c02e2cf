//! Draining, stopping and signals.

use std::future::pending;
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::sync_channel;

use axum::Router;
use axum::routing::get;
use rustix::process::Signal;
use shearwater::{DriverChoice, Server};
use shearwater_tower::Running;
use testkit::{TIMEOUT, TestClient, until_refused};
use tokio::sync::watch;

use crate::process::{self, Process};
use crate::served::{drivers, here, runtime, started};

const OFFER: [&str; 2] = ["Connection: upgrade", "Upgrade: websocket"];

/// A server with a request that waits until released.
struct Held {
    running: Running,
    client: TestClient,
    release: watch::Sender<bool>,
}

fn held(driver: DriverChoice, drain_ms: Option<u64>, fields: &[&str]) -> Held {
    let (release, released) = watch::channel(false);
    let (begun, has_begun) = sync_channel(1);
    let wait = move || {
        let (mut released, begun) = (released.clone(), begun.clone());
        async move {
            begun.send(()).expect("the test receives");
            drop(released.wait_for(|released| *released).await);
            "waited"
        }
    };
    let serve = here(Router::new().route("/wait", get(wait))).driver(driver);
    let serve = drain_ms.into_iter().fold(serve, |serve, drain_ms| serve.drain_ms(drain_ms));
    let running = started(serve).expect("starts");
    let mut client = TestClient::connect(running.address());
    client.ask("GET", "/wait", fields);
    has_begun.recv_timeout(TIMEOUT).expect("it is called");
    Held { running, client, release }
}

#[test]
fn drain_completes_requests_and_refuses_connections() {
    for driver in drivers() {
        for (what, drain_ms, fields) in [
            ("by default", None, &[][..]),
            ("without a deadline", Some(u64::MAX), &[]),
            ("for a request that offers an upgrade", None, &OFFER),
        ] {
            let Held { running, mut client, release } = held(driver, drain_ms, fields);
            running.drain();
            until_refused(running.address());
            release.send(true).expect("it waits");
            let response = client.response("GET");
            assert_eq!(
                (response.text(), response.field("connection")),
                ("waited", client.closing()),
                "{what}"
            );
            // Otherwise the server lingers until the client closes.
            drop(client);
            runtime().block_on(running.ended()).expect("ends normally");
        }
    }
}

#[test]
fn drain_ends_at_its_deadline() {
    let Held { running, mut client, release: _release } = held(DriverChoice::Auto, Some(50), &[]);
    running.drain();
    runtime().block_on(running.ended()).expect("ends normally");
    client.is_ended();
}

#[test]
fn stops_when_dropped() {
    let Held { running, client: _client, release: _release } = held(DriverChoice::Auto, None, &[]);
    let address = running.address();
    drop(running);
    until_refused(address);
}

/// Runs the server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let router = Router::new().route("/", get(async || "served")).route("/never", get(pending::<&str>));
    let serve = here(router).drain_ms(86_400_000);
    let running = started(serve.server(Server::handle_signals)).expect("starts");
    process::serves(running.address());
    running.wait().expect("ends normally");
    process::has_ended();
}

/// Holds for upgrade requests too.
#[test]
fn second_signal_stops_and_third_has_its_previous_effect() {
    for fields in [&[][..], &OFFER] {
        let mut process = Process::start("ending::process");
        assert_eq!(TestClient::connect(process.address).get("/").text(), "served");
        let mut client = TestClient::connect(process.address);
        client.ask("GET", "/never", fields);
        process.signal(Signal::TERM);
        until_refused(process.address);
        process.signal(Signal::TERM);
        process.server_ended();
        process.signal(Signal::TERM);
        assert_eq!(process.end().signal(), Some(Signal::TERM.as_raw()), "{fields:?}");
    }
}
