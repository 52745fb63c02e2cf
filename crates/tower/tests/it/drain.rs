//! Draining and stopping.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use axum::Router;
use axum::routing::get;
use testkit::{TIMEOUT, TestClient};
use tokio::sync::watch;

use crate::served::{drivers, here, runtime};

/// A router whose `/wait` waits until released.
fn held() -> (Router, Receiver<()>, watch::Sender<bool>) {
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
    (Router::new().route("/wait", get(wait)).route("/", get(|| async { "served" })), has_begun, release)
}

/// Waits until the listener is closed.
fn until_refused(address: SocketAddr) {
    loop {
        match TcpStream::connect(address) {
            // Still in the queue of a listener that is about to close.
            Ok(stream) => drop(stream),
            Err(error) => {
                let kind = error.kind();
                return assert!(
                    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn a_drain_responses_what_was_received_and_takes_nobody_new() {
    let (router, has_begun, release) = held();
    let running = here(router).start().expect("starts");
    let address = running.address();
    let mut client = TestClient::connect(address);
    client.ask("GET", "/wait", &[]);
    has_begun.recv_timeout(TIMEOUT).expect("it is called");
    running.drain();
    until_refused(address);
    release.send(true).expect("it waits");
    let response = client.response("GET");
    assert_eq!((response.text(), response.field("connection")), ("waited", Some("close")));
    // Otherwise the server lingers until the client closes.
    drop(client);
    runtime().block_on(running.ended()).expect("ends normally");
}

#[test]
fn a_drain_responses_a_request_that_offers_an_upgrade() {
    for driver in drivers() {
        let (router, has_begun, release) = held();
        let running = here(router).driver(driver).start().expect("starts");
        let mut client = TestClient::connect(running.address());
        client.ask("GET", "/wait", &["Connection: upgrade", "Upgrade: websocket"]);
        has_begun.recv_timeout(TIMEOUT).expect("it is called");
        running.drain();
        until_refused(running.address());
        release.send(true).expect("it waits");
        let response = client.response("GET");
        assert_eq!((response.text(), response.field("connection")), ("waited", Some("close")));
        drop(client);
        runtime().block_on(running.ended()).expect("ends normally");
    }
}

#[test]
fn a_drain_ends_in_its_time() {
    let (router, has_begun, _release) = held();
    let running = here(router).drain_ms(50).start().expect("starts");
    let mut client = TestClient::connect(running.address());
    client.ask("GET", "/wait", &[]);
    has_begun.recv_timeout(TIMEOUT).expect("it is called");
    running.drain();
    runtime().block_on(running.ended()).expect("ends normally");
    // Cut off by close or reset.
    assert!(
        std::io::Read::read(&mut client.stream(), &mut [0]).is_ok_and(|len| len == 0),
        "nothing is answered"
    );
}

#[test]
fn a_drain_may_have_no_end() {
    for driver in drivers() {
        let (router, has_begun, release) = held();
        let running = here(router).driver(driver).drain_ms(u64::MAX).start().expect("starts");
        let mut client = TestClient::connect(running.address());
        client.ask("GET", "/wait", &[]);
        has_begun.recv_timeout(TIMEOUT).expect("it is called");
        running.drain();
        until_refused(running.address());
        release.send(true).expect("it waits");
        assert_eq!(client.response("GET").text(), "waited");
        drop(client);
        runtime().block_on(running.ended()).expect("ends normally");
    }
}

#[test]
fn who_drops_what_it_awaits_stops_it() {
    let (router, has_begun, _release) = held();
    let running = here(router).start().expect("starts");
    let address = running.address();
    let mut client = TestClient::connect(address);
    client.ask("GET", "/wait", &[]);
    has_begun.recv_timeout(TIMEOUT).expect("it is called");
    drop(running);
    until_refused(address);
}
