//! Compression of handlers' responses.

use std::time::Duration;

use shearwater::testing::{TestResponse, Tested};
use shearwater::{
    App, COMPRESSED_BODY_BYTES_MAX, COMPRESSED_STREAMS_MAX, Call, Gone, Head, Request, Response, Status,
    after, compress, get, later,
};
use shearwater_compress::{Coding, decode};
use testkit::random;

const LINE: &str = "a line that is like the others\n";

/// Sets fields, `status`, and a body of so many `bytes` or so much `noise`: `NAME: VALUE` in each line.
fn set(lines: &str, response: &mut Response<'_>) {
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        let number = || value.parse::<usize>().expect("a number");
        match name {
            "bytes" => response.body(text(number())),
            "noise" => response.body(random::bytes(&mut random::part(7, 0), number())),
            "status" => response.status(number() as u16),
            _ => response.field(name, value),
        };
    }
}

/// Returns a text of so many bytes.
fn text(len: usize) -> String {
    LINE.repeat(len / LINE.len() + 1)[..len].to_owned()
}

fn tested(lines: &'static str) -> Tested {
    let app = App::new()
        .with(after(compress))
        .route("/now", get(move |_: &Request<'_>, response: &mut Response<'_>| set(lines, response)))
        .route(
            "/later",
            get(later(async move |call: &mut Call| {
                call.sleep(Duration::from_millis(10)).await;
                set(lines, &mut call.response());
            })),
        )
        .route(
            "/stream",
            get(later(async move |call: &mut Call| {
                set(lines, &mut call.response());
                let mut body = call.begin(Head::new(Status::OK));
                for _ in 0..3 {
                    body.send(LINE).await?;
                    body.sleep(Duration::from_secs(10)).await;
                }
                Ok::<_, Gone>(body.end())
            })),
        );
    Tested::new(app).expect("no mistakes")
}

fn request(method: &str, target: &str, accepted: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n")
}

fn coding_of(response: &TestResponse) -> &str {
    response.field("Content-Encoding").unwrap_or("identity")
}

/// Decodes the body of a response by its `Content-Encoding`.
fn content(response: &TestResponse) -> Vec<u8> {
    let name = coding_of(response);
    let Some(coding) = Coding::ALL.into_iter().find(|known| known.name() == name) else {
        return response.body.clone();
    };
    let mut plain = Vec::new();
    let read = decode(coding, &response.body[..]).and_then(|mut from| from.read_to_end(&mut plain));
    read.expect("a whole body in this coding");
    plain
}

#[test]
fn compresses_what_is_worth_it() {
    assert_eq!(COMPRESSED_BODY_BYTES_MAX, 65536);
    for (lines, accepted, coding, varies) in [
        ("Content-Type: text/html\nbytes: 1024", "gzip, br, zstd", "br", true),
        ("Content-Type: text/html; charset=utf-8\nbytes: 5000", "gzip", "gzip", true),
        ("Content-Type: application/json\nbytes: 5000", "zstd, br;q=0.9", "zstd", true),
        ("Content-Type: text/plain\nbytes: 65536", "br", "br", true),
        ("Content-Type: text/plain\nbytes: 5000\nstatus: 404", "br", "br", true),
        ("Content-Type: text/plain\nbytes: 5000\nVary: Origin, accept-encoding", "br", "br", true),
        // As it is, for this client or this content.
        ("Content-Type: text/plain\nbytes: 5000", "br;q=0, gzip;q=0", "identity", true),
        ("Content-Type: text/plain\nbytes: 5000", "identity, *;q=0", "identity", true),
        ("Content-Type: text/plain\nbytes: 5000", "deflate", "identity", true),
        ("Content-Type: text/plain\nbytes: 1023", "br", "identity", true),
        ("Content-Type: text/plain\nbytes: 65537", "br", "identity", true),
        ("Content-Type: text/plain\nnoise: 5000", "br", "identity", true),
        // For no client.
        ("Content-Type: image/png\nbytes: 5000", "br", "identity", false),
        ("bytes: 5000", "br", "identity", false),
        ("Content-Type: text/plain\nbytes: 5000\nContent-Encoding: deflate", "br", "deflate", false),
        (
            "Content-Type: text/plain\nbytes: 5000\nCache-Control: public, No-Transform",
            "br",
            "identity",
            false,
        ),
        (
            "Content-Type: text/plain\nbytes: 5000\nstatus: 206\nContent-Range: bytes 0-4999/5001",
            "br",
            "identity",
            false,
        ),
        ("Content-Type: text/plain\nbytes: 5000\nRepr-Digest: sha-256=:AA==:", "br", "identity", false),
    ] {
        let mut tested = tested(lines);
        for path in ["/now", "/later"] {
            let case = format!("{path}, {lines:?}, {accepted}");
            let response = tested.ask(request("GET", path, accepted));
            assert_eq!(coding_of(&response), coding, "{case}");
            let vary = response.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("vary"));
            let vary = vary.filter(|(_, value)| value.to_ascii_lowercase().contains("accept-encoding"));
            assert_eq!(vary.count(), usize::from(varies), "{case}: {:?}", response.fields);
            let len = lines
                .lines()
                .find_map(|line| line.strip_prefix("bytes: ").or_else(|| line.strip_prefix("noise: ")));
            assert_eq!(content(&response).len().to_string(), len.expect("a length"), "{case}");
        }
    }
}

#[test]
fn head_and_validators_agree_with_get() {
    let lines = "Content-Type: text/plain\nbytes: 5000\nETag: \"a\"\nAccept-Ranges: bytes";
    let mut tested = tested(lines);
    let without_date = |mut response: TestResponse| {
        response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        response.fields
    };
    for (accepted, tag, ranges) in [("br", "W/\"a\"", None), ("none", "\"a\"", Some("bytes"))] {
        let got = tested.ask(request("GET", "/now", accepted));
        assert_eq!((got.field("ETag"), got.field("Accept-Ranges")), (Some(tag), ranges));
        let mut client = tested.connect();
        client.send(request("HEAD", "/now", accepted));
        tested.settle_offloaded();
        let head = String::from_utf8_lossy(client.unread()).into_owned();
        for (name, value) in without_date(got) {
            assert!(head.contains(&format!("\r\n{name}: {value}\r\n")), "{name}: {value} not in {head}");
        }
    }
    let mut tested = self::tested("status: 304\nETag: \"a\"");
    assert_eq!(tested.ask(request("GET", "/now", "br")).field("Vary"), Some("Accept-Encoding"));
}

#[test]
fn each_piece_of_a_stream_arrives_at_once() {
    for (accepted, coding) in [("gzip", Coding::Gzip), ("br, gzip;q=0.5, zstd", Coding::Zstd)] {
        let mut tested = tested("Content-Type: text/event-stream\nETag: \"a\"");
        let mut client = tested.connect();
        client.send(request("GET", "/stream", accepted));
        for pieces in 1..=3 {
            tested.settle_offloaded();
            let received = String::from_utf8_lossy(client.unread()).into_owned();
            assert!(received.contains(&format!("Content-Encoding: {}\r\n", coding.name())), "{received}");
            let (coded, _) = dechunked(client.unread());
            let mut plain = vec![0; pieces * LINE.len()];
            let mut from = decode(coding, &coded[..]).expect("a decoder");
            from.read_exact(&mut plain).expect("all pieces so far");
            assert!(plain == LINE.repeat(pieces).as_bytes());
            tested.pass(Duration::from_secs(10));
        }
        tested.settle_offloaded();
        let response = client.response().expect("it has ended");
        assert_eq!(content(&response), LINE.repeat(3).as_bytes());
        assert_eq!(response.field("ETag"), Some("W/\"a\""));
    }
}

/// Returns the data of the chunks so far, and whether the last one was among them.
fn dechunked(response: &[u8]) -> (Vec<u8>, bool) {
    let start = response.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    let (mut data, mut rest) = (Vec::new(), &response[start..]);
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (data, true);
        }
        data.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    (data, false)
}

#[test]
fn further_streams_are_sent_as_they_are() {
    let mut tested = tested("Content-Type: text/plain");
    let mut clients: Vec<_> = (0..=COMPRESSED_STREAMS_MAX).map(|_| tested.connect()).collect();
    for client in &mut clients {
        client.send(request("GET", "/stream", "gzip"));
    }
    tested.settle_offloaded();
    let is_coded = |received: &[u8]| String::from_utf8_lossy(received).contains("Content-Encoding: gzip");
    let coded = clients.iter_mut().filter_map(|client| is_coded(client.unread()).then_some(())).count();
    assert_eq!(coded, COMPRESSED_STREAMS_MAX);
    // Those that end make room.
    tested.pass(Duration::from_secs(31));
    tested.settle_offloaded();
    assert!(clients.iter_mut().all(|client| client.response().is_some()));
    assert_eq!(tested.ask(request("GET", "/stream", "gzip")).field("Content-Encoding"), Some("gzip"));
}
