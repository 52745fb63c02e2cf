//! Real signals to a process that serves a router.

use std::future::pending;
use std::os::unix::process::ExitStatusExt;

use axum::Router;
use axum::routing::get;
use rustix::process::Signal;
use shearwater::{Server, Verbosity};
use testkit::TestClient;

use crate::process::{self, Process};
use crate::served::here;

/// Runs the server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let router = Router::new().route("/", get(async || "served")).route("/never", get(pending::<&str>));
    let serve = here(router).verbosity(Verbosity::Off).drain_ms(86_400_000);
    let running = serve.server(Server::handle_signals).start().expect("starts");
    process::serves(running.address());
    running.wait().expect("ends normally");
    process::has_ended();
}

/// Holds for upgrade requests too.
#[test]
fn a_second_signal_ends_it_at_once_and_a_third_does_what_it_did_before() {
    for fields in [&[][..], &["Connection: upgrade", "Upgrade: websocket"]] {
        let mut process = Process::start();
        let mut client = TestClient::connect(process.address);
        assert_eq!(client.request("GET", "/", &[]).text(), "served");
        client.ask("GET", "/never", fields);
        process.signal(Signal::INT);
        process.until_refused();
        process.signal(Signal::INT);
        process.server_ended();
        process.signal(Signal::INT);
        assert_eq!(process.end().signal(), Some(Signal::INT.as_raw()), "{fields:?}");
    }
}
