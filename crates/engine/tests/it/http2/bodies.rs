//! Content in both directions, and the windows that bound it.

use shearwater_engine::limits::{MULTIPLEXED_ITEMS_MAX, MULTIPLEXED_OUTPUT_BYTES_MAX};
use shearwater_engine::{Limits, Timeouts};
use testkit::http2::frame::{DATA, HEADERS, INITIAL_WINDOW_SIZE};
use testkit::{ClientResponse, Error};

use super::client::{SimHttp2Client, sends, world, world_with};
use crate::harness::SimWorld;
use crate::harness::app::{BUFFER_BYTES_MAX, big, file_bytes, text_of};

/// Code of resets: the exchange is no longer wanted.
const CANCEL: u32 = 8;
/// Windows without a setting, bytes.
const WINDOW_BYTES: usize = 65_535;
/// More than any window of the server.
const LARGE_BYTES: usize = 4 * 1024 * 1024;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 11) as u8).collect()
}

#[test]
fn keeps_a_body_for_its_handler() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for len in [0, 1, 1000, BUFFER_BYTES_MAX as usize] {
        let stream = client.post("/buffer/1", &content(len));
        client.exchange(&mut world);
        assert_eq!(client.response(stream).text(), text_of("POST", "/buffer/1", &content(len)), "{len}");
    }
    client.finish(&mut world);
}

#[test]
fn discards_a_body_that_no_handler_reads() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.post("/plain/1", &content(LARGE_BYTES));
    client.exchange(&mut world);
    assert_eq!(client.session.unsent(stream), 0);
    assert_eq!(client.response(stream).text(), text_of("POST", "/plain/1", b""));
    client.assert_usable(&mut world);
    client.finish(&mut world);
}

#[test]
fn a_handler_reads_its_body() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for target in ["/pulled", "/taken/1", "/taken/2"] {
        let stream = client.post(target, &content(LARGE_BYTES));
        client.exchange(&mut world);
        let text = text_of("POST", target, &content(LARGE_BYTES));
        assert_eq!(client.response(stream).text(), text);
    }
    client.finish(&mut world);
}

#[test]
fn bodies_are_read_side_by_side() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = [5, 3, 7].map(|number| {
        let target = format!("/taken/{number}");
        (client.post(&target, &content(number * 100_000)), target, number)
    });
    client.exchange(&mut world);
    for (stream, target, number) in streams {
        assert_eq!(client.response(stream).text(), text_of("POST", &target, &content(number * 100_000)));
    }
    client.finish(&mut world);
}

/// The handler sleeps for 20 seconds before it reads.
#[test]
fn a_body_gets_credit_only_as_its_handler_reads() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.post("/hungry/0", &content(LARGE_BYTES));
    client.exchange(&mut world);
    let unsent = client.session.unsent(stream);
    assert!(unsent > LARGE_BYTES / 2, "{unsent} bytes wait");
    client.pass(&mut world, 10_000);
    assert_eq!(client.session.unsent(stream), unsent, "no credit without a reader");
    // Others on the connection don't wait for it.
    client.assert_usable(&mut world);
    for _ in 0..600 {
        client.pass(&mut world, 1000);
        if client.session.unsent(stream) == 0 {
            break;
        }
    }
    client.pass(&mut world, 60_000);
    assert_eq!(client.response(stream).text(), format!("{LARGE_BYTES}\n"));
    client.finish(&mut world);
}

#[test]
fn rejects_a_body_that_is_too_large() {
    let too_many = BUFFER_BYTES_MAX as usize + 1;
    let length = too_many.to_string();
    for fields in [&[][..], &[("content-length", &*length)]] {
        let mut world = world();
        let mut client = SimHttp2Client::connect(&mut world);
        let stream = client.begin("/buffer/1", fields);
        client.session.send_data(stream, &content(too_many), true);
        client.exchange(&mut world);
        assert_eq!(client.response(stream).status, 413, "{fields:?}");
        client.assert_usable(&mut world);
        client.finish(&mut world);
    }
}

/// The response comes before the rest of the body, which needn't be sent.
#[test]
fn rejects_an_announced_body_before_it_arrives() {
    let mut world = world_with(Limits { body_bytes_max: 1000, ..Limits::default() }, Timeouts::default());
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = ["/plain/1", "/pulled", "/buffer/1"]
        .map(|target| client.begin(target, &[("content-length", "1001")]));
    client.exchange(&mut world);
    for stream in streams {
        assert_eq!(client.response(stream).status, 413);
    }
    client.assert_usable(&mut world);
    client.finish(&mut world);
}

#[test]
fn resets_a_stream_whose_content_differs_from_its_length() {
    for (length, is_end) in [("5", true), ("3", false)] {
        let mut world = world();
        let mut client = SimHttp2Client::connect(&mut world);
        let stream = client.begin("/buffer/1", &[("content-length", length)]);
        client.session.send_data(stream, b"1234", is_end);
        client.exchange(&mut world);
        let response = client.session.response(stream);
        let is_rejected = match &response {
            Ok(Some(ClientResponse { status, .. })) => *status == 400,
            error => *error == Err(Error::StreamReset(1)),
        };
        assert!(is_rejected, "{length}: {response:?}");
        client.assert_usable(&mut world);
        client.finish(&mut world);
    }
}

#[test]
fn streams_a_response_with_trailers() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.begin("/trailers?X-Only", &[]);
    client.exchange(&mut world);
    for piece in [&b"one"[..], b"two"] {
        client.session.send_data(stream, piece, false);
        client.exchange(&mut world);
        assert_eq!(client.session.data(stream), Ok(Some(piece.to_vec())));
    }
    client.session.send_data(stream, b"three", false);
    client.session.send_trailers(stream, &[("x-sum", "1"), ("grpc-status", "0")]);
    client.exchange(&mut world);
    let response = client.response(stream);
    assert_eq!((response.status, response.text(), response.content_length()), (200, "three", None));
    let trailers = [("x-sum", "1"), ("grpc-status", "0"), ("x-only", "x")];
    assert!(response.trailers.iter().map(|(name, value)| (&**name, &**value)).eq(trailers), "{response:?}");
    client.finish(&mut world);
}

#[test]
fn streams_what_a_handler_sends() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = (0..4).map(|digit| client.get(&format!("/stream/{digit}?5"))).collect::<Vec<_>>();
    client.exchange(&mut world);
    for stream in streams {
        assert_eq!(client.response(stream).text(), "line 0\nline 1\nline 2\nline 3\nline 4\n");
    }
    client.finish(&mut world);
}

/// Returns a world, a client that grants nothing by itself, and the stream of a large response.
fn begin_large(target: &str, settings: &[(u16, u32)]) -> (SimWorld, SimHttp2Client, u32) {
    let mut world = world();
    let mut client = SimHttp2Client::with_settings(&mut world, settings);
    client.session.stop_window_updates();
    let stream = client.get(target);
    client.exchange(&mut world);
    (world, client, stream)
}

/// Returns the content that has arrived.
fn arrived(client: &mut SimHttp2Client, stream: u32) -> Vec<u8> {
    std::iter::from_fn(|| client.session.data(stream).expect("no reset").filter(|data| !data.is_empty()))
        .flatten()
        .collect()
}

#[test]
fn a_large_response_waits_for_the_windows() {
    for (target, expected) in [("/big", big()), ("/file", file_bytes()), ("/large", &[b'x'; 1_000_000][..])] {
        let (mut world, mut client, stream) = begin_large(target, &[]);
        let mut received = arrived(&mut client, stream);
        assert_eq!(received.len(), WINDOW_BYTES, "{target}");
        client.assert_usable(&mut world);
        // The stream's window alone is not enough, nor is the connection's.
        for number in [stream, 0] {
            client.session.grant(number, 100_000);
            client.exchange(&mut world);
            received.extend(arrived(&mut client, stream));
            let more = if number == 0 { 100_000 } else { 0 };
            assert_eq!(received.len(), WINDOW_BYTES + more, "{target}");
        }
        for number in [0, stream] {
            client.session.grant(number, expected.len() as u32);
        }
        client.exchange(&mut world);
        received.extend(arrived(&mut client, stream));
        assert!(received == expected, "{target}: {} bytes", received.len());
        client.finish(&mut world);
    }
}

#[test]
fn a_setting_opens_the_windows_of_streams() {
    let (mut world, mut client, stream) = begin_large("/big", &[(INITIAL_WINDOW_SIZE, 0)]);
    assert_eq!(client.session.data(stream), Ok(None));
    client.session.grant(stream, 1000);
    client.exchange(&mut world);
    assert!(arrived(&mut client, stream) == big()[..1000]);
    client.session.reset(stream, testkit::http2::frame::CANCEL);
    client.exchange(&mut world);
    client.finish(&mut world);
}

#[test]
fn large_responses_share_the_connection() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = ["/big", "/file", "/kept-file", "/big"].map(|target| client.get(target));
    client.exchange(&mut world);
    for (stream, expected) in streams.into_iter().zip([big(), file_bytes(), file_bytes(), big()]) {
        assert!(client.response(stream).body == expected);
    }
    client.finish(&mut world);
}

/// Later output of a handler is sent after that which waits, and so is the end.
#[test]
fn a_handler_ends_while_its_output_waits_for_a_window() {
    let mut world = world();
    let mut client = SimHttp2Client::with_settings(&mut world, &[(INITIAL_WINDOW_SIZE, 3)]);
    client.session.stop_window_updates();
    let stream = client.get("/ticks?2");
    client.pass(&mut world, 45_000);
    client.assert_pending(stream);
    client.session.grant(stream, 100);
    client.exchange(&mut world);
    assert_eq!(client.response(stream).text(), "tick 0\ntick 1\n");
    client.finish(&mut world);
}

/// A handler that is polled without output during a send isn't forgotten.
#[test]
fn a_handler_responds_after_a_send_in_which_it_was_polled() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    client.sim.stop_reading(100);
    client.session.stop_window_updates();
    client.get("/plain/1");
    let stream = client.post("/hungry", b"0123456789");
    client.sim.send(client.session.take_output());
    world.settle();
    world.pass(20_050);
    client.sim.peer.set_reading(true);
    client.sim.peer.set_window(usize::MAX / 2);
    client.exchange(&mut world);
    client.pass(&mut world, 1000);
    assert_eq!(client.response(stream).status, 200);
    client.finish(&mut world);
}

/// Before the response they are a reason to reject the request, afterwards to cut it off.
#[test]
fn too_many_trailers_concern_their_stream_alone() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let names: Vec<String> = (0..40).map(|number| format!("x-{number}")).collect();
    let trailers: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    for (target, status) in [("/buffer/1", Ok(431)), ("/mirror", Err(Error::StreamReset(CANCEL)))] {
        let stream = client.begin(target, &[]);
        client.session.send_data(stream, b"content", false);
        client.exchange(&mut world);
        client.session.send_trailers(stream, &trailers);
        client.exchange(&mut world);
        let response = client.session.response(stream);
        assert_eq!(response.map(|response| response.expect("it is whole").status), status, "{target}");
        client.assert_usable(&mut world);
    }
    client.finish(&mut world);
}

/// A small response isn't behind more of a large one than the output that is being sent.
#[test]
fn little_of_a_large_response_precedes_a_small_one() {
    let mut world = world();
    let mut client = SimHttp2Client::with_settings(&mut world, &[(INITIAL_WINDOW_SIZE, 1 << 30)]);
    client.session.grant(0, 1 << 30);
    client.exchange(&mut world);
    client.sim.stop_reading(100);
    for target in ["/big", "/plain/1"] {
        client.get(target);
        client.sim.send(client.session.take_output());
        world.settle();
    }
    client.sim.peer.set_reading(true);
    client.sim.peer.set_window(usize::MAX / 2);
    world.settle();
    client.session.receive_unread(&client.sim.peer.read());
    let (mut before, mut heads) = (0, 0);
    while heads < 2 {
        let frame = client.session.next_frame().expect("both responses");
        heads += usize::from(frame.kind == HEADERS);
        before += if frame.kind == DATA { frame.payload.len() } else { 0 };
    }
    assert!(before > 0 && before <= MULTIPLEXED_OUTPUT_BYTES_MAX, "{before} bytes");
}

#[test]
fn an_output_has_a_bounded_number_of_file_ranges() {
    let mut world = world();
    let mut client = SimHttp2Client::with_settings(&mut world, &[(INITIAL_WINDOW_SIZE, 5)]);
    client.session.stop_window_updates();
    let before = sends(&world);
    for _ in 0..MULTIPLEXED_ITEMS_MAX + 1 {
        client.get("/file");
    }
    client.sim.send(client.session.take_output());
    world.settle();
    assert_eq!(sends(&world) - before, 2);
    client.session.receive_unread(&client.sim.peer.read());
    let frames = std::iter::from_fn(|| client.session.next_frame());
    assert_eq!(frames.filter(|frame| frame.kind == DATA).count(), MULTIPLEXED_ITEMS_MAX + 1);
}
