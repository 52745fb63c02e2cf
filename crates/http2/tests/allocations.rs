//! Requests don't allocate in the steady state, and idle connections hold little. A separate binary, because the
//! counter replaces the process's allocator.

use shearwater_http2::{Connection, HeadBuffer, PREFACE, ResponseHead, StreamEvent, limits::Limits};
use testkit::CountingAllocator;

const ROUNDS: u32 = 2_000;
/// Memory of an idle connection beside its own size, in bytes.
const IDLE_BYTES_MAX: usize = 1024;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Returns `GET https://www.example.com/` with content and a cookie; the first one inserts its authority.
fn request(stream: u32) -> Vec<u8> {
    let authority: &[u8] = match stream {
        1 => b"\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        _ => b"\xBE",
    };
    let block = [b"\x82\x87\x84", authority, b"\x00\x06cookie\x03a=b"].concat();
    let stream = stream.to_be_bytes();
    [&[0, 0, block.len() as u8, 1, 4], &stream[..], &block, b"\0\0\x04\0\x01", &stream, b"abcd"].concat()
}

/// Receives one request, and responds to it.
fn round(server: &mut Connection, head: &mut HeadBuffer, input: &[u8], out: &mut Vec<u8>) {
    server.begin_turn(0);
    out.clear();
    let mut at = 0;
    loop {
        let step = server.receive(&input[at..], head, out).expect("valid frames");
        at += step.consumed;
        match step.event {
            StreamEvent::More => break,
            StreamEvent::Data { stream, content, ends: true } => {
                server.consumed(stream, content.len(), out);
                let lines: &[u8] = b"Server: a\r\nContent-Type: text/plain\r\nETag: \"1\"\r\n";
                let response =
                    ResponseHead { status: 200, lines, length: Some(5), ..ResponseHead::default() };
                assert!(server.respond(stream, &response, false, out));
                server.set_available(stream, 5);
                assert_eq!(server.next_data(100), Some((stream, 5)));
                assert!(server.data(stream, b"hello", true, out));
            }
            StreamEvent::Request { ends: false, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((at, server.open_streams()), (input.len(), 0));
}

#[test]
fn requests_allocate_nothing() {
    let limits = Limits::default();
    let (mut head, mut out) = (HeadBuffer::new(limits.head), Vec::with_capacity(4096));
    let mut server = Connection::new(limits, 0, &mut out);
    let inputs: Vec<Vec<u8>> = (0..ROUNDS).map(|number| request(2 * number + 1)).collect();
    // 5 bytes of each response are taken from the windows.
    let start = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
    assert_eq!(server.receive(&start, &mut head, &mut out).map(|step| step.event), Ok(StreamEvent::More));
    let (warm, steady) = inputs.split_at(200);
    warm.iter().for_each(|input| round(&mut server, &mut head, input, &mut out));
    let before = ALLOCATOR.on_this_thread().calls();
    steady.iter().for_each(|input| round(&mut server, &mut head, input, &mut out));
    assert_eq!(ALLOCATOR.on_this_thread().calls() - before, 0);
    let busy = server.held_bytes();
    server.trim();
    println!("{} bytes inline, {busy} held, {} idle", size_of::<Connection>(), server.held_bytes());
    assert!(server.held_bytes() <= IDLE_BYTES_MAX && busy <= 8 * IDLE_BYTES_MAX);
    round(&mut server, &mut head, &request(2 * ROUNDS + 1), &mut out);
}
