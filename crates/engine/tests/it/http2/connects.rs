//! Extended CONNECT (RFC 8441): where it is offered, and requests that open no tunnel, or end their side at once.

use shearwater_engine::{Limits, Timeouts};
use testkit::Error;
use testkit::http2::frame::{ENABLE_CONNECT_PROTOCOL, Frame, INITIAL_WINDOW_SIZE, SETTINGS};

use super::client::{SimHttp2Client, setting};
use super::tunnels::{PROTOCOL_ERROR, assert_nothing_left, connect, connect_fields, join, taken, world_of};
use crate::harness::SimWorld;
use crate::tunnels::Upgrading;

#[test]
fn offers_extended_connect_where_the_service_has_a_protocol() {
    let (mut world, _) = world_of(Limits::default());
    let mut plain = super::client::world();
    let first = |received: Vec<u8>| {
        let mut received = received;
        let frame = Frame::take(&mut received).expect("a frame");
        assert_eq!(frame.kind, SETTINGS);
        frame.to_settings().contains(&(ENABLE_CONNECT_PROTOCOL, 1))
    };
    let preface = testkit::http2::PREFACE;
    let with = world.send(preface);
    let without = plain.send(preface);
    assert_eq!((first(with.peer.read()), first(without.peer.read())), (true, false));
}

#[test]
fn a_connect_that_ends_its_stream_ends_that_side() {
    for path in ["/", "/later"] {
        let (mut world, kept) = world_of(Limits::default());
        let mut client = SimHttp2Client::connect(&mut world);
        let stream = client.session.begin_whole(&connect_fields(path, "x"));
        client.pass(&mut world, 1000);
        let (mut program, unread) = taken(&kept);
        assert!(program.read(&mut Vec::new()) && unread.is_empty(), "{path}");
        program.write(b"a word");
        drop(program);
        client.exchange(&mut world);
        assert_eq!(client.response(stream).body, b"a word", "{path}");
        assert_nothing_left(&mut world, &client);
    }
}

#[test]
fn a_handler_that_ignores_a_connect_sends_no_content() {
    let (mut world, _) = world_of(Limits::default());
    let mut client = SimHttp2Client::connect(&mut world);
    let [ignored, refused, unknown] = [("/ignored", "x"), ("/refused", "x"), ("/", "y")]
        .map(|(path, protocol)| connect(&mut client, path, protocol));
    client.exchange(&mut world);
    for (stream, expected) in [
        (ignored, (501, "This resource is no tunnel.\n")),
        (refused, (403, "Forbidden\n")),
        (unknown, (501, "The protocol of this CONNECT is not implemented.\n")),
    ] {
        let response = client.response(stream);
        assert_eq!((response.status, response.text()), expected);
    }
    client.assert_usable(&mut world);
    assert_nothing_left(&mut world, &client);
}

/// Its stream doesn't stay: content of it would be due after `write_ms`, and its connection reset.
#[test]
fn a_handler_that_streams_to_a_connect_sends_nothing_of_it() {
    for window in [0, 65_535] {
        let kept = Upgrading::default();
        let mut world = SimWorld::of(setting(Limits::default(), Timeouts::default()), kept.clone());
        let mut client = SimHttp2Client::with_settings(&mut world, &[(INITIAL_WINDOW_SIZE, window)]);
        let (_, program) = join(&mut world, &mut client, &kept);
        let stream = connect(&mut client, "/streamed", "x");
        client.pass(&mut world, 1000);
        if window == 0 {
            client.session.grant(stream, 1000);
            client.exchange(&mut world);
        }
        let response = client.response(stream);
        assert_eq!((response.status, response.text()), (501, "This resource is no tunnel.\n"), "{window}");
        client.pass(&mut world, 2 * Timeouts::default().write_ms);
        client.assert_usable(&mut world);
        drop(program);
        client.exchange(&mut world);
        assert_nothing_left(&mut world, &client);
    }
}

#[test]
fn rejects_connects_that_break_the_rules() {
    let (mut world, _) = world_of(Limits::default());
    let mut client = SimHttp2Client::connect(&mut world);
    let connect = (":method", "CONNECT");
    let [scheme, path, authority, protocol] =
        [(":scheme", "http"), (":path", "/"), (":authority", "a"), (":protocol", "x")];
    for fields in [
        &[connect, path, authority, protocol][..],
        &[connect, scheme, authority, protocol],
        &[connect, scheme, path, protocol],
        &[connect, scheme, path, authority, (":protocol", "x y")],
        &[(":method", "GET"), scheme, path, authority, protocol],
        &[connect, scheme, path, authority],
    ] {
        let stream = client.session.begin(fields);
        client.exchange(&mut world);
        assert_eq!(client.session.response(stream), Err(Error::StreamReset(PROTOCOL_ERROR)), "{fields:?}");
    }
    let plain = client.session.begin(&[connect, (":authority", "a:443")]);
    client.exchange(&mut world);
    assert_eq!(client.response(plain).status, 501);
    client.finish(&mut world);

    let mut other = super::client::world();
    let mut client = SimHttp2Client::connect(&mut other);
    let stream = client.session.begin(&[connect, scheme, path, authority, protocol]);
    client.exchange(&mut other);
    assert_eq!(client.session.response(stream), Err(Error::StreamReset(PROTOCOL_ERROR)), "it isn't enabled");
    client.finish(&mut other);
}
