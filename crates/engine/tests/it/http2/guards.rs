//! Requests on streams that wait for a guard.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shearwater_engine::http1::Head;
use shearwater_engine::{
    BodyPolicy, ExchangeListener, FinishedExchange, GuardsPassed, Limits, Request, Response, Service,
    Timeouts,
};

use super::client::{SimHttp2Client, setting};
use crate::harness::{Setting, SimWorld};

const WAIT: Duration = Duration::from_secs(2);

/// Has each request wait, then echoes its content, and its trailers as fields.
struct Guarded;

impl Service for Guarded {
    fn body_policy(&self, _: &Head<'_>) -> BodyPolicy {
        BodyPolicy::Call
    }

    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        let guard = |request: &Request<'_>, response: &mut Response<'_>| {
            response.defer(request, async |call| {
                call.sleep(WAIT).await;
                call.pass();
            });
            ControlFlow::Break(())
        };
        response.guards(request, [guard, guard])
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        if self.guard(request, response).is_none() {
            return;
        }
        if request.path() == "/at-once" {
            response.text("at once");
            return;
        }
        response.defer(request, async |mut call| {
            let mut content = Vec::new();
            if call.path() == "/unread" {
                call.sleep(5 * WAIT).await;
            }
            while let Some(piece) = call.read().await {
                content.extend_from_slice(piece);
            }
            let trailers: Vec<_> = call.trailers().map(|field| field.value.to_vec()).collect();
            call.response().field("x-trailers", trailers.concat()).body(content);
        });
    }
}

/// Duration, and content received.
type Seen = (Duration, u64);

fn world() -> (SimWorld<Guarded>, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let log = Arc::clone(&seen);
    let listener = ExchangeListener::new(&[], move |_| {
        let log = Arc::clone(&log);
        move |finished: &FinishedExchange<'_>| {
            let one = (finished.duration(), finished.body_bytes_received());
            log.lock().expect("no listener has panicked").push(one);
        }
    });
    let setting = Setting { listeners: vec![listener], ..setting(Limits::default(), Timeouts::default()) };
    (SimWorld::of(setting, Guarded), seen)
}

#[test]
fn content_and_trailers_that_come_early_reach_the_handler() {
    let (mut world, _) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.begin("/", &[]);
    client.session.send_data(stream, b"content", false);
    client.session.send_trailers(stream, &[("x-sum", "42")]);
    client.pass(&mut world, 3 * WAIT.as_millis() as u64);
    let response = client.response(stream);
    assert_eq!((response.text(), response.field("x-trailers")), ("content", Some("42")));
    client.finish(&mut world);
}

/// The client may send more when the handler reads, as without a guard, and not before.
#[test]
fn a_guard_gives_no_window_back() {
    let (mut world, _) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.post("/unread", &[1; 500_000]);
    for _ in 0..4 {
        client.pass(&mut world, WAIT.as_millis() as u64);
    }
    assert_eq!(client.session.unsent(stream), 500_000 - 65_536);
    for _ in 0..4 {
        client.pass(&mut world, WAIT.as_millis() as u64);
    }
    assert_eq!(client.response(stream).body.len(), 500_000);
    client.finish(&mut world);
}

#[test]
fn a_request_counts_from_its_first_beginning() {
    let (mut world, seen) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for (target, received) in [("/", 7), ("/at-once", 7), ("/", 0)] {
        let stream = if received > 0 { client.post(target, b"content") } else { client.get(target) };
        client.pass(&mut world, 3 * WAIT.as_millis() as u64);
        assert_eq!(client.response(stream).status, 200);
        let seen = std::mem::take(&mut *seen.lock().expect("no listener has panicked"));
        assert_eq!(seen.len(), 1, "{target}");
        let (duration, bytes) = seen[0];
        assert!(duration >= 2 * WAIT, "{target}: {duration:?}");
        assert_eq!(bytes, received, "{target}");
    }
    client.finish(&mut world);
}

#[test]
fn so_does_a_request_of_http1() {
    let (mut world, seen) = world();
    for request in [
        "GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\ncontent",
    ] {
        let mut client = world.send(request);
        world.pass(3 * WAIT.as_millis() as u64);
        assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n"), "{}", client.text());
        let seen = std::mem::take(&mut *seen.lock().expect("no listener has panicked"));
        assert_eq!(seen.len(), 1, "{request}");
        assert!(seen[0].0 >= 2 * WAIT, "{request}: {:?}", seen[0]);
    }
}
