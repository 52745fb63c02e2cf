//! Finished exchanges of streams, as a listener sees them.

use std::sync::{Arc, Mutex};

use shearwater_engine::http1::Version;
use shearwater_engine::{ExchangeEnd, ExchangeListener, FinishedExchange, Http2Options, Limits};
use testkit::http2::request_fields;

use super::client::SimHttp2Client;
use crate::harness::app::{BIG_BYTES, FILE_BYTES};
use crate::harness::{Setting, SimWorld};

/// Target, status, end, bytes of content received and sent.
type Seen = (String, Option<u16>, ExchangeEnd, u64, u64);

fn world() -> (SimWorld, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let log = Arc::clone(&seen);
    let listener = ExchangeListener::new(&[], move |_| {
        let log = Arc::clone(&log);
        move |finished: &FinishedExchange<'_>| {
            assert_eq!(finished.version(), Some(Version::Http2));
            let target = String::from_utf8_lossy(finished.target()).into_owned();
            let (received, sent) = (finished.body_bytes_received(), finished.body_bytes_sent());
            let one = (target, finished.status(), finished.end(), received, sent);
            log.lock().expect("no listener has panicked").push(one);
        }
    });
    let http2 = Http2Options { prior_knowledge: true, ..Http2Options::default() };
    (SimWorld::new(Setting { http2, listeners: vec![listener], ..Setting::default() }), seen)
}

fn take(seen: &Mutex<Vec<Seen>>) -> Vec<Seen> {
    let mut all = std::mem::take(&mut *seen.lock().expect("no listener has panicked"));
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn complete(target: &str, received: u64, sent: u64) -> Seen {
    (target.to_owned(), Some(200), ExchangeEnd::Complete, received, sent)
}

#[test]
fn each_stream_has_one_record_with_its_content() {
    let (mut world, seen) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for target in ["/plain/1", "/big", "/file", "/later/1"] {
        client.get(target);
    }
    client.post("/buffer/2", b"12345");
    client.post("/mirror", b"1234567");
    client.exchange(&mut world);
    client.pass(&mut world, 1000);
    let len = |target: &str, method: &str, body: &[u8]| {
        crate::harness::app::text_of(method, target, body).len() as u64
    };
    let mut expected = [
        complete("/plain/1", 0, len("/plain/1", "GET", b"")),
        complete("/big", 0, BIG_BYTES as u64),
        complete("/file", 0, FILE_BYTES as u64),
        complete("/later/1", 0, len("/later/1", "GET", b"")),
        complete("/buffer/2", 5, len("/buffer/2", "POST", b"12345")),
        ("/mirror".to_owned(), Some(202), ExchangeEnd::Complete, 7, 7),
    ];
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(take(&seen), expected);
    client.finish(&mut world);
}

#[test]
fn a_rejected_head_has_its_target() {
    let (mut world, seen) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let long = format!("/{}", "x".repeat(Limits::default().target_bytes_max));
    let many: Vec<_> = (0..=Limits::default().fields_max).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "1")).collect();
    for (target, fields, status) in [(&*long, &[][..], 414), ("/fields", &many, 431), ("/../up", &[], 400)] {
        let stream = client.session.begin_whole(&request_fields("http", "GET", target, fields));
        client.exchange(&mut world);
        assert_eq!(client.response(stream).status, status);
        let [(seen_target, seen_status, ..)] = &take(&seen)[..] else { panic!("one record") };
        assert_eq!(*seen_status, Some(status));
        assert!(!seen_target.is_empty() && target.starts_with(seen_target.as_str()), "{seen_target:?}");
    }
    client.finish(&mut world);
}

#[test]
fn an_exchange_that_is_cut_off_says_how() {
    let (mut world, seen) = world();
    let mut client = SimHttp2Client::connect(&mut world);
    client.session.stop_window_updates();
    let large = client.get("/big");
    let never = client.get("/never");
    client.exchange(&mut world);
    client.session.reset(large, 8);
    client.session.reset(never, 8);
    client.exchange(&mut world);
    let sent = 65_535;
    let expected = [
        ("/big".to_owned(), Some(200), ExchangeEnd::Disconnected, 0, sent),
        ("/never".to_owned(), None, ExchangeEnd::Disconnected, 0, 0),
    ];
    assert_eq!(take(&seen), expected);
    client.get("/never");
    client.exchange(&mut world);
    client.sim.peer.reset();
    world.settle();
    assert_eq!(take(&seen), [("/never".to_owned(), None, ExchangeEnd::Disconnected, 0, 0)]);
    world.end();
}
