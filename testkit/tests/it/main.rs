//! Tests of the response reader, the client and the generators.

#![forbid(unsafe_code)]

mod http2;

use std::io::{self, Cursor, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;

use testkit::versions::{Body, WORD, content, half_written, read};
use testkit::{Client, Error, Framing, Head, random};

#[test]
fn head_gives_status_headers_and_framing() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nCONNECTION: keep-alive, Close\r\n\r\n";
    let head = Head::parse(head).unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("12")));
    assert!(head.closes());
    assert_eq!(head.framing("GET"), Framing::Length(12));
    assert_eq!(head.framing("HEAD"), Framing::None);
}

#[test]
fn rejects_malformed_heads() {
    for head in [
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 99 OK\r\n\r\n",
        "HTTP/1.1 200OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\nc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
    ] {
        assert!(Head::parse(head.as_bytes()).is_err(), "{head:?}");
    }
}

const PIPELINE: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
    HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\nA;x=y\r\n0123456789\r\n0\r\nT: u\r\n\r\n\
    HTTP/1.1 404 Not Found\r\n\r\nuntil close";

/// A stream that is read in pieces of this length.
struct Pieces(&'static [u8], usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn reads_the_same_responses_in_any_pieces() {
    for piece in 1..PIPELINE.len() {
        let mut client = Client::new(Pieces(PIPELINE.as_bytes(), piece));
        for (method, status, body) in [
            ("POST", 100, ""),
            ("POST", 200, "hello"),
            ("HEAD", 200, ""),
            ("GET", 200, "wiki0123456789"),
            ("GET", 404, "until close"),
        ] {
            let response = client.response_to(method).unwrap();
            assert_eq!((response.status(), response.text().as_str()), (status, body), "in pieces of {piece}");
        }
        assert_eq!(client.end(), Ok(()));
    }
}

#[test]
fn rejects_malformed_chunks_and_truncated_bodies() {
    let of = |bytes: &str| Client::new(Cursor::new(bytes.as_bytes().to_vec())).response();
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["x\r\n", "\r\n", "+1\r\na\r\n", "1\r\nab\r\n", "0\r\nbad trailer\r\n"] {
        assert!(matches!(of(&format!("{chunked}{body}")), Err(Error::Malformed(_))), "{body:?}");
    }
    for response in [&chunked[..20], chunked, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"] {
        assert_eq!(of(response), Err(Error::Truncated), "{response:?}");
    }
}

/// Returns a client of a server that reads one request and sends these bytes.
fn client_of(bytes: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0; 1]);
    });
    let mut client = Client::connect(address).unwrap();
    client.send("x").unwrap();
    client
}

#[test]
fn client_reads_responses_one_by_one() {
    let mut client = client_of(PIPELINE);
    assert_eq!(client.response().unwrap().status(), 100);
    assert_eq!(client.head("POST").unwrap().status, 200);
    let mut body = Vec::new();
    while client.data(2, &mut |data| body.extend_from_slice(data)).unwrap() > 0 {}
    assert_eq!(body, b"hello");
    assert_eq!(client.response_to("HEAD").unwrap().body, b"");
    assert_eq!(client.response().unwrap().text(), "wiki0123456789");
    assert_eq!(client.response().unwrap().text(), "until close");
    assert_eq!(client.end(), Ok(()));
}

#[test]
fn client_distinguishes_ends_and_versions() {
    assert_eq!(client_of("").response(), Err(Error::Closed));
    assert_eq!(client_of("HTTP/1.1 2").response(), Err(Error::Truncated));
    assert_eq!(
        client_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").response(),
        Err(Error::Truncated)
    );
    const OLD: &str = "HTTP/1.0 200 OK\r\n\r\nold";
    assert!(matches!(client_of(OLD).response(), Err(Error::Malformed(_))));
    let mut client = client_of(OLD);
    client.accept_http10();
    assert_eq!(client.response().unwrap().text(), "old");
    let mut client = client_of(PIPELINE);
    assert_eq!(client.response().unwrap().status(), 100);
    assert!(client.end().is_err());
    assert!(client_of(PIPELINE).rest().unwrap().ends_with(b"until close"));
}

#[test]
fn generators_repeat_by_seed_and_differ_by_part() {
    let bytes = |seed, part| random::bytes(&mut random::part(seed, part), 33);
    assert_eq!(bytes(7, 1), bytes(7, 1));
    assert_ne!(bytes(7, 1), bytes(7, 2));
    assert_ne!(bytes(7, 1), bytes(8, 1));
}

#[test]
fn versions_are_read_whole_and_in_part_and_never_mixed() {
    let (one, other) = (content(7, 0, 80), content(8, 0, 80));
    assert_eq!(read(&one, 0, 0), Body::Version(7));
    assert_eq!(read(&one[16..40], 0, 16), Body::Version(7));
    let mut rewritten = one.clone();
    rewritten[..WORD].copy_from_slice(&half_written(0));
    assert_eq!(read(&rewritten, 0, 0), Body::HalfWritten);
    for bytes in [
        [&one[..40], &other[40..]].concat(),
        [&other[..8], &one[8..]].concat(),
        [&one[..40], &[0; 40]].concat(),
        [&one[8..16], &one[8..]].concat(),
        one[..79].to_vec(),
        content(7, 1, 80),
        Vec::new(),
    ] {
        assert!(matches!(read(&bytes, 0, 0), Body::Mixture(_)), "{bytes:?}");
    }
}
