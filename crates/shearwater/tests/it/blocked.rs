//! The watchdog: it reports a handler that blocks a worker, and sleeps in an idle server.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shearwater::{App, Notice, Request, Response};
use shearwater_engine::{Options, Server};

use crate::client::Client;

/// Maximum wait before a test fails.
const WAIT_MAX: Duration = Duration::from_secs(20);

#[test]
fn a_handler_that_keeps_its_worker_is_told_of() {
    let (let_go, wait): (_, Receiver<()>) = sync_channel(1);
    let wait = Arc::new(Mutex::new(wait));
    let mut app = App::new();
    app.get("/blocks", move |_: &Request, response: &mut Response| {
        wait.lock().expect("one at a time").recv().expect("the test releases it");
        response.text("done");
    });
    let routes = app.build().expect("one route");
    let options = Options {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        workers: 2,
        watchdog_ms: 20,
        ..Options::default()
    };
    let running = Server::bind(options).and_then(|server| server.start(move |worker| routes.service(worker)));
    let running = running.expect("it starts");
    let control = running.control();
    let mut client = Client::connect(running.start_report().addresses[0]);
    client.ask("GET", "/blocks", &[]);
    let until = Instant::now() + WAIT_MAX;
    let told = loop {
        match running.notice(until.saturating_duration_since(Instant::now())) {
            Some(Notice::WorkerBlocked { ms, times, .. }) => break (ms, times),
            Some(_) => {}
            None => panic!("nobody has told"),
        }
    };
    assert!(told.0 >= 20 && told.1 == 1, "{told:?}");
    let_go.send(()).expect("it waits");
    assert_eq!(client.response("GET").text(), "done");
    control.stop();
    running.wait().expect("it ends normally");
}
