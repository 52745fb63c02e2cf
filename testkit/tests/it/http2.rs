//! Tests of the HTTP/2 client: what it sends, reads and rejects.

use std::io::{self, Cursor, Read, Write};

use testkit::Error;
use testkit::http2::frame::{self, Frame};
use testkit::http2::hpack::{Decoder, TABLE_BYTES, encode};
use testkit::http2::{Http2Client, PREFACE, Session, request_fields};

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Blocks of RFC 7541 appendix C.6: the Huffman code, and a table of 256 bytes that evicts.
#[test]
fn decodes_the_examples_of_the_rfc() {
    let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
    let first =
        [":status: 302", "cache-control: private", date, "location: https://www.example.com"].join("\n");
    let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let third =
        first.replace("302", "200").replace("13:21 ", "13:22 ") + "\ncontent-encoding: gzip\n" + cookie;
    let mut decoder = Decoder::new(256);
    for (hex, expected) in [
        (
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97\
             c8e9ae82ae43d3",
            &first,
        ),
        ("4883640effc1c0bf", &first.replace("302", "307")),
        (
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960\
             d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            &third,
        ),
    ] {
        let fields = decoder.decode(&bytes(hex)).unwrap();
        let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(lines.join("\n"), *expected, "{hex}");
    }
}

#[test]
fn decodes_what_it_encodes() {
    let long = "x".repeat(40_000);
    let fields = [("a", ""), ("b", &long[..126]), ("c", &long[..127]), ("d", &long[..300]), ("e", &long)];
    let decoded = Decoder::new(TABLE_BYTES).decode(&encode(&fields)).unwrap();
    assert!(decoded.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(fields));
}

#[test]
fn rejects_invalid_header_blocks() {
    for block in [
        "80",
        "c0",
        "40",
        "7f",
        "400161",
        "40016101",
        "ffffffffffff",
        "82203fe101",
        "3fe2ff0f",
        "0001ff0161",
        "000181000161",
        "000184ffffffff0161",
    ] {
        assert!(matches!(Decoder::new(256).decode(&bytes(block)), Err(Error::Malformed(_))), "{block}");
    }
}

fn headers(fields: &[(&str, &str)], is_end: bool) -> Vec<u8> {
    Frame::headers(1, fields, is_end).encode()
}

fn data(content: &[u8], is_end: bool) -> Vec<u8> {
    Frame::data(1, content, is_end).encode()
}

const OK: (&str, &str) = (":status", "200");

/// Returns a client that has sent a request of this method, and has received these frames.
fn received(method: &str, frames: &[Vec<u8>]) -> Result<Session, Error> {
    let mut session = Session::new(&[]);
    session.send(method, "/", &[], b"");
    session.receive(&frames.concat()).map(|()| session)
}

#[test]
fn reads_interim_responses_padding_and_continued_blocks() {
    let padded = Frame::new(frame::DATA, frame::PADDED, 1, *b"\x02abc\0\0").encode();
    let block = encode(&[OK, ("x-long", &"y".repeat(100))]);
    let begun = Frame::new(frame::HEADERS, 0, 1, &block[..20]).encode();
    let continued = Frame::new(frame::CONTINUATION, frame::END_HEADERS, 1, &block[20..]).encode();
    let interim = headers(&[(":status", "103"), ("link", "</a>")], false);
    let trailers = headers(&[("x-sum", "1")], true);
    let mut session =
        received("GET", &[interim, begun, continued, padded, data(b"d", false), trailers]).unwrap();
    assert_eq!(session.response(1).unwrap().unwrap().status, 103);
    let response = session.response(1).unwrap().unwrap();
    assert_eq!((response.status, &*response.body), (200, &b"abcd"[..]));
    assert_eq!(response.field("X-Long").map(str::len), Some(100));
    assert_eq!(response.trailers, [("x-sum".to_owned(), "1".to_owned())]);
    assert_eq!(session.response(1), Err(Error::Closed), "it was taken");
}

#[test]
fn reads_responses_without_content() {
    let length = ("content-length", "5");
    for (method, status) in [("HEAD", "200"), ("GET", "304")] {
        let mut session = received(method, &[headers(&[(":status", status), length], true)]).unwrap();
        let response = session.response(1).unwrap().unwrap();
        assert_eq!((response.content_length(), response.body.len()), (Some(5), 0));
    }
}

#[test]
fn rejects_what_a_server_must_not_send() {
    let length = ("content-length", "5");
    let update = |stream, bytes: u32| Frame::window_update(stream, bytes).encode();
    let other = |kind, stream, payload: &[u8]| Frame::new(kind, 0, stream, payload).encode();
    for (why, frames) in [
        ("no status", vec![headers(&[("server", "a")], true)]),
        ("two", vec![headers(&[OK, OK], true)]),
        ("late", vec![headers(&[("server", "a"), OK], true)]),
        ("101", vec![headers(&[(":status", "101")], false)]),
        ("upper case", vec![headers(&[OK, ("Server", "a")], true)]),
        ("no name", vec![headers(&[OK, ("", "a")], true)]),
        ("line end", vec![headers(&[OK, ("server", "a\r\nb: c")], true)]),
        ("whitespace", vec![headers(&[OK, ("server", " a")], true)]),
        ("connection", vec![headers(&[OK, ("connection", "close")], true)]),
        ("chunks", vec![headers(&[OK, ("transfer-encoding", "chunked")], true)]),
        ("short", vec![headers(&[OK, length], false), data(b"1234", true)]),
        ("long", vec![headers(&[OK, length], false), data(b"123456", true)]),
        ("two lengths", vec![headers(&[OK, length, length], false), data(b"12345", true)]),
        ("content of 304", vec![headers(&[(":status", "304")], false), data(b"1", true)]),
        ("content first", vec![data(b"1", false)]),
        ("content later", vec![headers(&[OK], true), data(b"1", false)]),
        ("end after 103", vec![headers(&[(":status", "103")], true)]),
        ("open trailers", vec![headers(&[OK], false), headers(&[("a", "b")], false)]),
        ("status trailer", vec![headers(&[OK], false), headers(&[OK], true)]),
        ("idle stream", vec![Frame::reset(3, 0).encode()]),
        ("even stream", vec![Frame::reset(2, 0).encode()]),
        ("interrupted block", vec![other(frame::HEADERS, 1, b""), other(frame::PING, 0, &[0; 8])]),
        ("continued nothing", vec![other(frame::CONTINUATION, 1, b"")]),
        ("push", vec![other(frame::PUSH_PROMISE, 1, &[0, 0, 0, 2])]),
        ("no increment", vec![update(0, 0)]),
        ("long frame", vec![other(frame::PING, 0, &[0; 16_385])]),
        ("later GOAWAY", vec![other(frame::GOAWAY, 0, &[0; 8]), other(frame::GOAWAY, 0, &[1; 8])]),
    ] {
        assert!(matches!(received("GET", &frames), Err(Error::Malformed(_))), "{why}");
    }
}

#[test]
fn rejects_content_beyond_the_windows() {
    let content = [headers(&[OK], false), vec![data(&[0; 16_384], false); 4].concat()].concat();
    for granted in [&[][..], &[0], &[1]] {
        let mut session = Session::new(&[]);
        session.stop_window_updates();
        session.send("GET", "/", &[], b"");
        granted.iter().for_each(|stream| session.grant(*stream, 1));
        assert!(matches!(session.receive(&content), Err(Error::Malformed(_))), "{granted:?}");
    }
}

#[test]
fn reports_resets_and_ends() {
    let mut reset = received("GET", &[Frame::reset(1, frame::CANCEL).encode()]).unwrap();
    assert_eq!(reset.response(1), Err(Error::StreamReset(frame::CANCEL)));
    let complete = [headers(&[OK], true), Frame::reset(1, 0).encode()];
    assert_eq!(received("GET", &complete).unwrap().response(1).unwrap().unwrap().status, 200);
    let refused = Frame::new(frame::GOAWAY, 0, 0, [0; 8]).encode();
    let mut refused = received("GET", &[refused]).unwrap();
    assert_eq!((refused.go_away(), refused.response(1)), (Some((0, 0)), Err(Error::Closed)));
    for (frames, expected) in [(vec![], Error::Closed), (vec![headers(&[OK], false)], Error::Truncated)] {
        let mut session = received("GET", &frames).unwrap();
        assert_eq!(session.response(1), Ok(None));
        session.receive_end().unwrap();
        assert_eq!(session.response(1), Err(expected));
    }
    let mut half = received("GET", &[b"\0\0".to_vec()]).unwrap();
    assert!(matches!(half.receive_end(), Err(Error::Truncated)));
}

#[test]
fn sends_content_as_the_windows_permit() {
    let mut session = Session::new(&[]);
    session.receive(&Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 10)]).encode()).unwrap();
    session.take_output();
    let stream = session.send("POST", "/", &[], b"0123456789abcdef");
    assert_eq!((session.window(stream), session.unsent(stream)), (0, 6));
    session.receive(&Frame::window_update(stream, 4).encode()).unwrap();
    assert_eq!(session.unsent(stream), 2);
    session.receive(&Frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 100)]).encode()).unwrap();
    assert_eq!((session.window(stream), session.unsent(stream)), (88, 0));
    let mut sent = session.take_output();
    let content: Vec<Frame> = std::iter::from_fn(|| Frame::take(&mut sent)).collect();
    let content: Vec<&Frame> = content.iter().filter(|frame| frame.kind == frame::DATA).collect();
    let expected = [(&b"0123456789"[..], false), (b"abcd", false), (b"ef", true)];
    assert!(content.iter().map(|frame| (&*frame.payload, frame.has(frame::END_STREAM))).eq(expected));
}

#[test]
fn formats_the_head_of_each_form_of_target() {
    let head = |method, target| {
        let fields = request_fields("http", method, target, &[("host", "a.test"), ("x", "y")]);
        let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.join(" ")
    };
    assert_eq!(head("GET", "/b?c"), ":method=GET :scheme=http :authority=a.test :path=/b?c x=y");
    assert_eq!(
        head("GET", "/?u=http://b/"),
        ":method=GET :scheme=http :authority=a.test :path=/?u=http://b/ x=y"
    );
    assert_eq!(head("GET", "https://b/c"), ":method=GET :scheme=https :authority=b :path=/c x=y");
    assert_eq!(head("GET", "https://b"), ":method=GET :scheme=https :authority=b :path=/ x=y");
    assert_eq!(head("OPTIONS", "*"), ":method=OPTIONS :scheme=http :authority=a.test :path=* x=y");
    assert_eq!(head("CONNECT", "b:1"), ":method=CONNECT :authority=b:1 x=y");
}

/// A stream that has these bytes to read, and keeps what is written.
struct Script(Cursor<Vec<u8>>, Vec<u8>);

impl Read for Script {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read(room)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn gives_raw_access_to_frames() {
    let ping = Frame::new(frame::PING, 0, 0, *b"12345678");
    let response = Frame::headers(1, &[OK, ("server", "a")], true);
    let script = [ping.encode(), response.encode()].concat();
    let mut client = Http2Client::new(Script(Cursor::new(script), Vec::new())).unwrap();
    let invalid = Frame::new(200, 255, 7, *b"anything");
    client.frames().send(&invalid).unwrap();
    assert_eq!(client.frames().read(), Ok(Some(ping)));
    let read = client.frames().read().unwrap().unwrap();
    assert_eq!(client.frames().decode(&read.payload).unwrap()[1], ("server".to_owned(), "a".to_owned()));
    assert_eq!(client.frames().read(), Ok(None));
    let sent = [PREFACE, &Frame::settings(&[]).encode(), &invalid.encode()].concat();
    assert_eq!(client.stream().1, sent, "nothing is acknowledged");
}
