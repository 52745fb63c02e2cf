//! The room behind `/ws`, in frames as RFC 6455 writes them.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::program::Program;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;

/// A guest's end of the line.
struct Guest(TcpStream);

impl Guest {
    /// Upgrades a connection.
    fn join(demo: &Program) -> Self {
        let mut stream = demo.connect();
        let head = "GET /ws HTTP/1.1\r\nHost: demo\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
        Self(stream)
    }

    /// Sends a frame of up to 125 bytes. It is masked with zeros, which leaves it as it is.
    fn send(&mut self, kind: u8, payload: &[u8]) {
        let head = [kind, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        self.0.write_all(&[&head, payload].concat()).unwrap();
    }

    /// The next frame of up to 125 bytes: its kind and payload.
    fn hear(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1])];
        self.0.read_exact(&mut payload).unwrap();
        (head[0], payload)
    }

    fn text(&mut self) -> String {
        let (kind, payload) = self.hear();
        assert_eq!(kind, TEXT, "{payload:?}");
        String::from_utf8(payload).unwrap()
    }

    /// The code of the close frame that comes next.
    fn closed(&mut self) -> u16 {
        let (kind, payload) = self.hear();
        assert_eq!(kind, CLOSE);
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

#[test]
fn what_one_says_all_hear() {
    let demo = Program::start(&[]);
    let mut first = Guest::join(&demo);
    assert_eq!(first.text(), "guest 1 is here");
    let mut second = Guest::join(&demo);
    assert_eq!((first.text(), second.text()), ("guest 2 is here".to_owned(), "guest 2 is here".to_owned()));
    second.send(TEXT, "ahöy".as_bytes());
    assert_eq!((first.text(), second.text()), ("guest 2: ahöy".to_owned(), "guest 2: ahöy".to_owned()));
    drop(second);
    assert_eq!(first.text(), "guest 2 is gone");
}

#[test]
fn what_is_no_text_ends_the_visit() {
    let demo = Program::start(&[]);
    let mut guest = Guest::join(&demo);
    guest.text();
    guest.send(BINARY, &[1, 2, 3]);
    assert_eq!(guest.closed(), 1003);
}

/// A frame that says it has 4,097 bytes is not waited for.
#[test]
fn a_message_that_is_too_long_ends_the_visit() {
    let demo = Program::start(&[]);
    let mut witness = Guest::join(&demo);
    witness.text();
    let mut guest = Guest::join(&demo);
    assert_eq!(witness.text(), "guest 2 is here");
    guest.0.write_all(&[TEXT, 0xfe, 0x10, 0x01, 0, 0, 0, 0]).unwrap();
    assert_eq!(witness.text(), "guest 2 is gone");
}

#[test]
fn guests_are_told_when_the_server_ends() {
    let demo = Program::start(&[]);
    let mut guest = Guest::join(&demo);
    guest.text();
    demo.terminate();
    assert_eq!(guest.closed(), 1001);
    assert_eq!(demo.wait().0.code(), Some(0));
}

#[test]
fn a_plain_request_is_no_guest() {
    let demo = Program::start(&[]);
    let refused = demo.get("/ws").status;
    assert!((400..500).contains(&refused), "{refused}");
}
