//! The chat room at `/ws`, in raw frames (RFC 6455).

use std::io::Write;
use std::time::Duration;

use testkit::TestClient;

use crate::program::Program;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;

/// More messages of 4 KiB than two sockets hold, both ways.
const MESSAGES_MAX: usize = 100_000;

/// A guest's connection.
struct Guest(TestClient);

impl Guest {
    /// Upgrades a connection.
    fn join(demo: &Program) -> Self {
        let mut client = demo.connect();
        let fields = [
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ];
        let response = client.ask("GET", "/ws", &fields).head();
        let accepted = (response.status, response.field("Sec-WebSocket-Accept"));
        assert_eq!(accepted, (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
        Self(client)
    }

    /// Sends a frame of up to 125 bytes. It is masked with zeros, which leaves it as it is.
    fn send(&mut self, kind: u8, payload: &[u8]) {
        let head = [kind, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        self.0.send([&head, payload].concat());
    }

    /// Reads a frame of up to 125 bytes: its opcode and payload.
    fn hear(&mut self) -> (u8, Vec<u8>) {
        let head = self.0.exactly(2);
        let payload = self.0.exactly(usize::from(head[1]));
        (head[0], payload)
    }

    fn text(&mut self) -> String {
        let (kind, payload) = self.hear();
        assert_eq!(kind, TEXT, "{payload:?}");
        String::from_utf8(payload).unwrap()
    }

    /// Reads a close frame and returns its code.
    fn closed(&mut self) -> u16 {
        let (kind, payload) = self.hear();
        assert_eq!(kind, CLOSE);
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

#[test]
fn broadcasts_messages_to_all_guests() {
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
fn closes_a_guest_that_sends_binary() {
    let demo = Program::start(&[]);
    let mut guest = Guest::join(&demo);
    guest.text();
    guest.send(BINARY, &[1, 2, 3]);
    assert_eq!(guest.closed(), 1003);
}

/// Rejects a frame by its announced length of 4,097 bytes, without waiting for it.
#[test]
fn closes_a_guest_that_sends_a_long_message() {
    let demo = Program::start(&[]);
    let mut witness = Guest::join(&demo);
    witness.text();
    let mut guest = Guest::join(&demo);
    assert_eq!(witness.text(), "guest 2 is here");
    guest.0.send([TEXT, 0xfe, 0x10, 0x01, 0, 0, 0, 0]);
    assert_eq!(witness.text(), "guest 2 is gone");
}

#[test]
fn closes_guests_when_the_server_ends() {
    let demo = Program::start(&[]);
    let mut guest = Guest::join(&demo);
    guest.text();
    demo.terminate();
    assert_eq!(guest.closed(), 1001);
    assert_eq!(demo.wait().status.code(), Some(0));
}

/// The drain time also limits the wait for a guest that doesn't read.
#[test]
fn cuts_off_guests_after_the_drain() {
    let demo = Program::start(&[]);
    let guest = Guest::join(&demo);
    guest.0.stream().set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    let message = [&[TEXT, 0xfe, 0x0f, 0xff, 0, 0, 0, 0][..], &[b'a'; 0xfff]].concat();
    // Its messages come back to it: once they fill the sockets, the server stops reading.
    let heard = (0..MESSAGES_MAX).take_while(|_| guest.0.stream().write_all(&message).is_ok()).count();
    assert!(heard < MESSAGES_MAX, "the server keeps reading from a guest that does not read");
    demo.terminate();
    let end = demo.wait();
    assert!(end.status.success());
    assert_eq!(
        end.stdout.lines().last(),
        Some("demo: drain time is over: remaining connections are cut off")
    );
}

#[test]
fn rejects_a_plain_request() {
    let demo = Program::start(&[]);
    let refused = demo.get("/ws").status;
    assert!((400..500).contains(&refused), "{refused}");
}
