//! Reloads: a new service for new requests, the old one for those that have begun, and none of it kept longer.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use shearwater_engine::http1::Head;
use shearwater_engine::{
    Around, BodyPolicy, GuardsPassed, Limits, Notice, Reload, ReloadError, Reloading, Request, Response,
    Service, Timeouts,
};

use crate::harness::unit::{get, head, post};
use crate::harness::{Setting, SimClient, SimWorld};

/// Time that `/later` and `/step` wait.
const WAIT: Duration = Duration::from_millis(100);

thread_local! {
    /// Versions of the services of this thread's workers.
    static ALIVE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

fn alive() -> Vec<u32> {
    ALIVE.with_borrow(Clone::clone)
}

/// A service that responds with its version.
struct Versioned(Rc<Version>);

/// A version that lives as long as its service, and requests that the service has begun.
struct Version(u32);

impl Versioned {
    fn new(version: u32) -> Self {
        ALIVE.with_borrow_mut(|alive| alive.push(version));
        Self(Rc::new(Version(version)))
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        ALIVE.with_borrow_mut(|alive| alive.retain(|version| *version != self.0));
    }
}

impl Around for Version {
    fn response(self: Rc<Self>, first: u64, _: &Request<'_>, response: &mut Response<'_>) {
        response.text(&format!("by {} after {first}", self.0));
    }
}

impl Service for Versioned {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match head.path() {
            "/call" => BodyPolicy::Call,
            // The new version accepts no body at all.
            _ => BodyPolicy::Buffer { bytes_max: if self.0.0 == 1 { 1000 } else { 0 } },
        }
    }

    /// The first guard of `/guarded` admits clients in version 1 only, the second one waits.
    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        let version = self.0.0;
        let guards = [0, 1].map(|number| {
            move |request: &Request<'_>, response: &mut Response<'_>| match number {
                0 if version == 1 => ControlFlow::Continue(()),
                0 => {
                    response.status(403).text(&format!("refused by {version}"));
                    ControlFlow::Break(())
                }
                _ => {
                    response.defer(request, async move |call| {
                        call.sleep(WAIT).await;
                        call.pass();
                    });
                    ControlFlow::Break(())
                }
            }
        });
        response.guards(request, guards.into_iter().filter(|_| request.path() == "/guarded"))
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        if self.guard(request, response).is_none() {
            return;
        }
        let version = Rc::clone(&self.0);
        if !matches!(request.path(), "/later" | "/call" | "/step") {
            response.text(&format!("by {}", version.0));
            return;
        }
        response.defer(request, move |mut call| async move {
            call.sleep(WAIT).await;
            call.response().text(&format!("by {}", version.0));
        });
        if request.path() == "/step" {
            response.around(&self.0, self.0.0.into());
        }
    }
}

type World = SimWorld<Versioned>;

fn world() -> World {
    world_of(Setting::default())
}

fn world_of(setting: Setting) -> World {
    let mut world = SimWorld::of(setting, Versioned::new(1));
    world.settle();
    world
}

fn to_version(version: u32) -> Reload<Versioned> {
    Reload::new(move |worker, old: &Versioned| {
        assert!(worker == 0 && old.0.0 < version);
        Versioned::new(version)
    })
}

/// Orders a reload and lets the worker take it.
#[track_caller]
fn reload(world: &mut World, version: u32) -> Reloading {
    let reloading = world.control.reload(to_version(version)).expect("it serves");
    world.settle();
    assert_eq!(reloading.wait(Duration::ZERO), Ok(()));
    reloading
}

/// Asserts the body of the last response to a client.
#[track_caller]
fn assert_body(client: &mut SimClient, body: &str) {
    let text = client.text();
    assert!(text.ends_with(&format!("\r\n\r\n{body}")), "{text:?} doesn't end with {body:?}");
}

#[test]
fn a_reload_changes_the_next_request_of_open_connections() {
    let mut world = world();
    let mut clients: Vec<SimClient> = (0..3).map(|_| world.send(get("/"))).collect();
    clients.iter_mut().for_each(|client| assert_body(client, "by 1"));
    for version in 2..5 {
        assert_eq!(reload(&mut world, version).number(), u64::from(version) - 1);
        assert_eq!(alive(), [version], "the old service is freed at once");
        for client in &mut clients {
            world.feed(client, get("/"));
            assert_body(client, &format!("by {version}"));
        }
    }
    assert_eq!(world.totals().reloads, 3);
    assert_eq!(world.totals().requests, 12, "counters survive");
    clients.iter().for_each(|client| client.peer.finish());
    world.end();
}

/// Their numbers mean nothing to the new service: a guard would be skipped.
#[test]
fn a_request_that_waits_for_a_guard_passes_all_guards_of_the_new_service() {
    for request in [get("/guarded"), post("/guarded", "0123456789").into_bytes()] {
        let mut world = world();
        let mut client = world.send(request.clone());
        world.pass(250);
        assert_body(&mut client, "by 1");
        let mut waiting = world.send(request);
        reload(&mut world, 2);
        assert_eq!(waiting.text(), "");
        world.pass(250);
        assert_body(&mut waiting, "refused by 2");
        assert_eq!(alive(), [2]);
        [client, waiting].iter().for_each(|client| client.peer.finish());
        world.end();
    }
}

/// The service that has decided about a request's body must also respond to it.
#[test]
fn requests_that_have_begun_end_under_their_service() {
    for (path, body, expected) in [
        ("/later", "", "by 1"),
        ("/step", "", "by 1 after 1"),
        ("/buffered", "0123456789", "by 1"),
        ("/later", "0123456789", "by 1"),
        ("/step", "0123456789", "by 1 after 1"),
        ("/call", "0123456789", "by 1"),
    ] {
        let mut world = world();
        let mut idle = world.send(get("/"));
        let request = post(path, body);
        let cut = if body.is_empty() { request.len() } else { request.len() - 5 };
        let mut client = world.send(&request[..cut]);
        reload(&mut world, 2);
        reload(&mut world, 3);
        assert_eq!(alive(), [1, 3], "{path}: nothing has begun under version 2");
        world.feed(&mut idle, get("/"));
        assert_body(&mut idle, "by 3");
        world.feed(&mut client, &request[cut..]);
        world.pass(200);
        assert_body(&mut client, expected);
        assert_eq!(alive(), [3], "{path} {body}: the last request has ended");
        world.feed(&mut client, get("/"));
        assert_body(&mut client, "by 3");
        for client in [client, idle] {
            client.peer.finish();
        }
        world.end();
    }
}

#[test]
fn a_partial_head_belongs_to_the_new_service() {
    let mut world = world();
    let request = head("POST", "/buffered", "Content-Length: 10\r\n");
    let mut client = world.send(&request[..request.len() - 1]);
    reload(&mut world, 2);
    assert_eq!(alive(), [2]);
    world.feed(&mut client, &request[request.len() - 1..]);
    assert!(client.text().starts_with("HTTP/1.1 413 "), "{:?}", client.text());
    world.finish(&client);
}

#[test]
fn pipelined_requests_after_one_that_waits_are_for_the_new_service() {
    let mut world = world();
    let mut client = world.send([get("/step"), get("/"), get("/step")].concat());
    reload(&mut world, 2);
    world.pass(400);
    let text = client.text();
    let bodies: Vec<_> =
        text.split("HTTP/1.1 ").filter_map(|response| response.split("\r\n\r\n").nth(1)).collect();
    assert_eq!(bodies, ["by 1 after 1", "by 2", "by 2 after 2"]);
    assert_eq!(alive(), [2]);
    world.finish(&client);
}

#[test]
fn the_old_service_is_freed_when_its_last_client_leaves() {
    for (path, body) in [("/step", ""), ("/buffered", "0123456789"), ("/call", "0123456789")] {
        let mut world = world();
        let request = post(path, body);
        let clients = [(); 2].map(|()| world.send(&request[..request.len() - body.len() / 2]));
        reload(&mut world, 2);
        for (client, left) in clients.iter().zip([&[1, 2][..], &[2]]) {
            assert_eq!(alive(), [1, 2], "{path}");
            client.peer.reset();
            world.settle();
            assert_eq!(alive(), left, "{path}");
        }
        world.end();
    }
}

#[test]
fn a_worker_takes_the_latest_of_several_reloads() {
    let mut world = world();
    let first = world.control.reload(to_version(2)).expect("it serves");
    assert_eq!(first.wait(Duration::ZERO), Err(ReloadError::Unfinished { workers: 1 }));
    let second = world.control.reload(to_version(3)).expect("it serves");
    world.settle();
    assert_eq!(alive(), [3]);
    for reloading in [first, second] {
        assert_eq!(reloading.wait(Duration::ZERO), Ok(()));
    }
    assert_eq!(world.totals().reloads, 2);
}

#[test]
fn a_panic_while_making_the_service_keeps_the_old_one() {
    let mut world = world();
    let failing = Reload::new(|_, _: &Versioned| -> Versioned { panic!("a panic on purpose") });
    let failing = failing.timeouts(Timeouts { idle_ms: 1, ..Timeouts::default() });
    let reloading = world.control.reload(failing).expect("it serves");
    world.settle();
    assert_eq!(reloading.wait(Duration::ZERO), Err(ReloadError::Failed { workers: 1 }));
    let notices = world.notices();
    let [notice @ Notice::ReloadFailed { worker: 0, message, place: Some(_) }] = &notices[..] else {
        panic!("{notices:?}");
    };
    assert_eq!(message, "a panic on purpose");
    let line = notice.to_string();
    assert!(
        line.starts_with("worker 0 keeps its old service: the function that makes the new one panicked ("),
        "{line}"
    );
    let mut client = world.send(get("/"));
    world.pass(1000);
    assert_body(&mut client, "by 1");
    assert!(!client.peer.saw_fin(), "the timeouts are as before");
    reload(&mut world, 2);
    world.feed(&mut client, get("/"));
    assert_body(&mut client, "by 2");
    world.finish(&client);
}

#[test]
fn a_reload_of_another_type_is_refused() {
    struct Other;
    impl Service for Other {
        fn respond(&self, _: &Request<'_>, _: &mut Response<'_>) {}
    }
    let world = world();
    let refused = world.control.reload(Reload::new(|_, _: &Other| Other));
    let refused = refused.expect_err("it can't be called");
    assert!(
        matches!(refused, ReloadError::OtherType { serves } if serves.ends_with("::Versioned")),
        "{refused}"
    );
    assert_eq!(world.totals().reloads, 0);
}

#[test]
fn a_reload_during_a_drain_is_refused() {
    let mut world = world();
    let mut client = world.send(get("/step"));
    world.control.drain(60_000);
    assert_eq!(world.control.reload(to_version(2)).map(drop), Err(ReloadError::Ending));
    world.settle();
    assert_eq!(alive(), [1]);
    client.peer.finish();
    world.run();
    assert_body(&mut client, "by 1 after 1");
}

/// The order of the two doesn't matter to a request that has begun.
#[test]
fn a_drain_right_after_a_reload_ends_every_request_under_its_service() {
    let mut world = world();
    let mut begun = world.send(get("/step"));
    let mut idle = world.send(get("/"));
    let reloading = world.control.reload(to_version(2)).expect("it serves");
    world.control.drain(60_000);
    world.settle();
    assert_eq!((reloading.wait(Duration::ZERO), alive()), (Ok(()), vec![1, 2]));
    world.feed(&mut idle, get("/"));
    for client in [&begun, &idle] {
        client.peer.finish();
    }
    world.run();
    assert_body(&mut begun, "by 1 after 1");
    assert_body(&mut idle, "by 2");
    assert_eq!(alive(), [2]);
}

#[test]
fn a_worker_that_starts_late_takes_the_reload() {
    let mut world = SimWorld::of(Setting::default(), Versioned::new(1));
    let reloading = world.control.reload(to_version(2)).expect("it serves");
    world.control.drain(0);
    world.worker.run().expect("the simulated driver doesn't break");
    assert_eq!((reloading.wait(Duration::ZERO), alive()), (Ok(()), vec![2]));
}

#[test]
fn timeouts_and_some_limits_change_with_the_service() {
    let mut world = world_of(Setting {
        timeouts: Timeouts { idle_ms: 5_000, ..Timeouts::default() },
        ..Setting::default()
    });
    let mut before = world.send(get("/"));
    let limits = Limits { body_bytes_max: 3, head_bytes_max: 10, ..Limits::default() };
    let timeouts = Timeouts { idle_ms: 60_000, ..Timeouts::default() };
    let changed = Reload::new(|_, _: &Versioned| Versioned::new(1)).limits(limits).timeouts(timeouts);
    world.control.reload(changed).expect("it serves");
    let mut after = world.send(get("/"));
    let (refused, _) = world.ask(post("/buffered", "0123"));
    assert!(refused.starts_with("HTTP/1.1 413 "), "{refused}");
    world.pass(10_000);
    before.assert_closed();
    assert_body(&mut after, "by 1");
    assert!(!after.peer.saw_fin(), "heads are as long as before, and it may be idle for longer");
    world.finish(&after);
}
