//! HTTP/2 by prior knowledge: requests on streams of one connection get the same responses as over HTTP/1.

mod bodies;
mod client;
mod connects;
mod ends;
mod faults;
mod guards;
mod records;
pub(crate) mod scripted;
mod tunnels;

use shearwater_engine::io::limits::RECV_BUFFER_BYTES;
use shearwater_engine::limits::DECODED_BYTES_PER_TURN_MAX;
use testkit::Error;
use testkit::http2::frame::{self, Frame};
use testkit::http2::{hpack, request_fields};

use crate::harness::SimWorld;
use crate::harness::app::text_of;
use client::{SimHttp2Client, sends, world};

/// Code of resets: an error of the server.
const INTERNAL_ERROR: u32 = 2;

#[test]
fn responds_at_once() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.get("/plain/1?a=b");
    client.exchange(&mut world);
    let response = client.response(stream);
    assert_eq!((response.status, response.text()), (200, &*text_of("GET", "/plain/1?a=b", b"")));
    assert_eq!(response.field("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(response.content_length(), Some(response.body.len()));
    assert_eq!(response.field("server"), Some("shearwater"));
    assert!(response.field("date").is_some() && response.trailers.is_empty());
    client.finish(&mut world);
}

#[test]
fn a_response_to_head_has_no_content() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for target in ["/plain/1", "/big", "/file", "/later/1"] {
        let full = client.session.begin_whole(&request_fields("http", "HEAD", target, &[]));
        client.exchange(&mut world);
        let response = client.response(full);
        assert_eq!((response.status, response.body.len()), (200, 0), "{target}");
        assert!(response.content_length().is_some_and(|len| len > 0), "{target}");
    }
    client.finish(&mut world);
}

#[test]
fn responds_with_each_status() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for status in [200, 204, 302, 404, 429, 503] {
        let stream = client.get(&format!("/stream-status/1?{status}"));
        let whole = client.get(&format!("/prebuilt?{status}"));
        client.exchange(&mut world);
        for stream in [stream, whole] {
            let response = client.response(stream);
            assert_eq!(response.status, status);
            assert_eq!(response.body.is_empty(), status == 204, "{status}");
        }
    }
    client.finish(&mut world);
}

#[test]
fn responds_with_404() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.get("/status?404");
    client.exchange(&mut world);
    let response = client.response(stream);
    assert_eq!((response.status, response.text()), (404, &*text_of("GET", "/status?404", b"")));
    client.assert_usable(&mut world);
    client.finish(&mut world);
}

#[test]
fn responds_to_requests_of_one_receive_in_one_send() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams: Vec<u32> = (0..10).map(|number| client.get(&format!("/plain/{number}"))).collect();
    let before = sends(&world);
    client.sim.send(client.session.take_output());
    world.settle();
    assert_eq!(sends(&world), before + 1);
    client.exchange(&mut world);
    for (number, stream) in streams.into_iter().enumerate() {
        assert_eq!(client.response(stream).text(), text_of("GET", &format!("/plain/{number}"), b""));
    }
    client.finish(&mut world);
}

/// References to an entry of the HPACK table, which a request makes in as many bytes.
const REFERENCES: usize = 60;

/// Connects, and sends requests with large lists at once.
fn with_large_lists(world: &mut SimWorld, count: u32) -> SimHttp2Client {
    const LATEST_ENTRY: u8 = 0x80 | 62;
    const ADDED: u8 = 0x40;
    let request = hpack::encode(&request_fields("http", "GET", "/empty", &[]));
    let mut entry = hpack::encode(&[("x", &"a".repeat(4_000))]);
    entry[0] |= ADDED;
    let whole = |stream, block: Vec<u8>| {
        Frame::new(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, stream, block).encode()
    };
    let mut client = SimHttp2Client::connect(world);
    client.sim.send(whole(1, [request.clone(), entry].concat()));
    world.settle();
    let block = [request, vec![LATEST_ENTRY; REFERENCES]].concat();
    let requests = (1..=count).flat_map(|number| whole(2 * number + 1, block.clone()));
    client.sim.send(requests.collect::<Vec<u8>>());
    client
}

#[test]
fn large_lists_wait_for_their_turn() {
    const LISTS: usize = 10;
    let mut world = world();
    let client = with_large_lists(&mut world, LISTS as u32);
    let before = sends(&world);
    world.settle();
    let lists_per_turn = DECODED_BYTES_PER_TURN_MAX.div_ceil(REFERENCES * 4_033);
    assert_eq!(sends(&world) - before, LISTS.div_ceil(lists_per_turn), "one send for each turn");
    client.finish(&mut world);
}

#[test]
fn no_more_is_read_than_the_turns_take() {
    let mut world = world();
    let mut other = SimHttp2Client::connect(&mut world);
    let client = with_large_lists(&mut world, 4_000);
    for _ in 0..20 {
        let stream = other.get("/plain/1");
        other.sim.send(other.session.take_output());
        world.turn();
        world.turn();
        let received = other.sim.peer.read();
        assert_eq!(other.session.receive(&received), Ok(()));
        assert_eq!(other.response(stream).status, 200);
        let buffered = world.worker.buffered_bytes();
        assert!(buffered <= 4 * RECV_BUFFER_BYTES, "{buffered}");
    }
    world.settle();
    client.finish(&mut world);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.post("/buffer/1", b"kept");
    for byte in client.session.take_output() {
        world.feed(&mut client.sim, [byte]);
    }
    client.exchange(&mut world);
    assert_eq!(client.response(stream).text(), text_of("POST", "/buffer/1", b"kept"));
    client.finish(&mut world);
}

#[test]
fn responds_later() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for digit in 0..4 {
        let target = format!("/later/{digit}");
        let stream = client.get(&target);
        client.exchange(&mut world);
        assert_eq!(client.response(stream).text(), text_of("GET", &target, b""));
    }
    client.finish(&mut world);
}

#[test]
fn deferred_responses_may_overtake_each_other() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let [slow, quick, at_once] = ["/ticks?1", "/later/3", "/plain/1"].map(|target| client.get(target));
    client.exchange(&mut world);
    client.assert_pending(slow);
    assert_eq!(client.response(quick).text(), text_of("GET", "/later/3", b""));
    assert_eq!(client.response(at_once).status, 200);
    client.pass(&mut world, 21_000);
    assert_eq!(client.response(slow).text(), "tick 0\n");
    client.finish(&mut world);
}

#[test]
fn a_panic_costs_its_request_and_nothing_else() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let waiting = client.get("/ticks?1");
    let panics =
        ["/panic", "/half-panic", "/later-panics/1", "/make-panics"].map(|target| client.get(target));
    let cut = client.get("/later-panics/1?begun");
    client.exchange(&mut world);
    for stream in panics {
        let response = client.response(stream);
        assert_eq!((response.status, response.field("x-half")), (500, None));
    }
    assert_eq!(client.session.response(cut), Err(Error::StreamReset(INTERNAL_ERROR)));
    client.assert_usable(&mut world);
    client.pass(&mut world, 21_000);
    assert_eq!(client.response(waiting).text(), "tick 0\n");
    assert_eq!(world.totals().handler_panics, 5);
    client.finish(&mut world);
}
