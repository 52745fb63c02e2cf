//! Reloads: an app replaces another one in a running server, by the program and by `SIGHUP`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::Signal;
use shearwater::{
    AcceptMode, App, Call, Control, Error, Reading, ReloadError, Request, get, later_reading, post,
};
use testkit::{TIMEOUT, TestClient};

use crate::process::{self, Process};
use crate::served::{Served, drivers, held_app, here, text, until};

/// An app whose state is its version, for immediate and deferred handlers. Returns that state, too.
fn versioned(version: u64) -> (App<Arc<u64>>, Weak<u64>) {
    let version = Arc::new(version);
    let weak = Arc::downgrade(&version);
    let handler = async |call: &mut Call<Arc<u64>, Reading>| {
        while call.read().await.is_some() {}
        call.state().to_string()
    };
    let app = App::with_state(move |_| Arc::clone(&version))
        .route("/", get(|request: &Request<Arc<u64>>| request.state().to_string()))
        .route("/", post(later_reading(handler)));
    (app, weak)
}

#[track_caller]
fn reload<S: 'static>(control: &Control, app: App<S>) {
    app.reload(control).expect("it serves").wait(TIMEOUT).expect("no worker is blocked");
}

#[test]
fn replaces_an_app_on_every_driver() {
    for (driver, accept) in drivers()
        .into_iter()
        .flat_map(|driver| [AcceptMode::Reuseport, AcceptMode::Dispatch].map(|accept| (driver, accept)))
    {
        let (app, mut old) = versioned(1);
        let served = Served::of(here().workers(2).driver(driver).accept_mode(accept), app);
        let mut clients: Vec<_> = (0..8).map(|_| served.connect()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/").text(), "1"));
        for version in 2..=50 {
            let mut begun = served.connect();
            begun.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
            let (app, weak) = versioned(version);
            reload(&served.control, app);
            clients.iter_mut().for_each(|client| assert_eq!(client.get("/").text(), version.to_string()));
            begun.send("x");
            // Its worker may have received it before the reload or afterwards.
            let begun_by: u64 = begun.response("POST").text().parse().expect("a version");
            assert!(begun_by == version - 1 || begun_by == version, "{begun_by} at {version}");
            until("the old state is freed", || old.strong_count() == 0);
            old = weak;
        }
        assert_eq!(served.control.totals().reloads, 49);
        drop(clients);
        let totals = served.stop();
        assert_eq!((totals.responses(), totals.requests_refused, totals.responses_5xx), (8 * 50 + 49, 0, 0));
    }
}

#[test]
fn an_app_with_mistakes_is_refused() {
    let served = Served::app(versioned(1).0);
    let app = App::new().route("/", get(text("one"))).route("/", get(text("two")));
    let refused = app.reload(&served.control).expect_err("there are two routes for one path");
    assert!(matches!(refused, Error::Routes(_)), "{refused}");
    assert_eq!(served.connect().get("/").text(), "1");
    assert_eq!(served.control.totals().reloads, 0);
}

#[test]
fn a_blocked_worker_takes_the_app_later() {
    let (app, gate) = held_app();
    let served = Served::of(here().watchdog_ms(0), app);
    let mut busy = served.connect();
    busy.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    let next = App::new().fallback("2");
    let reloading = next.reload(&served.control).expect("it serves");
    let unfinished = reloading.wait(Duration::from_millis(1));
    assert_eq!(unfinished, Err(ReloadError::Unfinished { workers: 1 }));
    gate.open();
    assert_eq!(busy.response("GET").text(), "waited");
    reloading.wait(TIMEOUT).expect("nothing blocks it");
    assert_eq!(busy.get("/").text(), "2");
}

#[test]
fn a_server_that_drains_keeps_its_app() {
    let served = Served::app(versioned(1).0);
    served.control.drain(60_000);
    let refused = versioned(2).0.reload(&served.control).expect_err("it ends");
    assert_eq!(refused.to_string(), "can't reload: the server is stopping");
}

/// Runs the server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let next = AtomicU64::new(2);
    let server = here().handle_signals().on_reload(move |control| {
        let version = next.fetch_add(1, Ordering::Relaxed);
        match version {
            3 => return Err("error: on purpose\n".to_owned()),
            4 => panic!("on purpose"),
            _ => {}
        }
        reload(control, versioned(version).0);
        Ok(version.to_string())
    });
    let running = server.start(versioned(1).0).expect("starts");
    process::serves(running.address());
    running.wait().expect("ends normally");
}

#[test]
fn sighup_calls_the_program() {
    let process = Process::start("reloading::process");
    let mut client = TestClient::connect(process.address);
    assert_eq!(client.get("/").text(), "1");
    // The third call fails and the fourth panics; signals during a call may be combined.
    for version in [2, 5, 6] {
        until_version(&process, &mut client, version);
    }
    process.signal(Signal::TERM);
    client.is_ended();
    assert!(process.end().success());
}

/// Sends signals until the server has this version.
fn until_version(process: &Process, client: &mut TestClient, version: u64) {
    let served = |client: &mut TestClient| client.get("/").text().parse::<u64>().expect("a version");
    let mut last = served(client);
    while last < version {
        process.signal(Signal::HUP);
        last = served(client);
    }
    assert!(last != 3 && last != 4, "these were refused");
}
