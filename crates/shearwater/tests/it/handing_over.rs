//! Connections that a handler takes over for another protocol, on each driver.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use shearwater::{App, DriverChoice, HandedOver, Request, Response};

use crate::client::Client;
use crate::served::{Served, drivers, here};

/// The request for the other protocol.
const UPGRADE: &str = "GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
/// What the other protocol says first.
const GREETING: &str = "handed over\n";
/// Length of the answer at `/big`.
const BIG_BYTES: usize = 3_000_000;
/// What is said in the other protocol, behind its greeting.
const REST_BYTES: usize = 300_000;

fn app() -> App {
    let mut app = App::new();
    app.get("/plain", |_: &Request, response: &mut Response| {
        response.text("plain");
    });
    app.get("/big", |_: &Request, response: &mut Response| {
        response.body(vec![b'b'; BIG_BYTES]);
    });
    app.get("/up", |_: &Request, response: &mut Response| {
        response.hand_over(|handed| drop(thread::spawn(|| speak(handed))));
    });
    app.post("/up", |_: &Request, response: &mut Response| {
        response.hand_over(|_| unreachable!("the request has a body"));
    });
    app
}

/// The other protocol: a greeting, then what was received, when the client has ended its side.
fn speak(handed: HandedOver) {
    let mut stream = TcpStream::from(handed.descriptor);
    stream.set_nonblocking(false).expect("a socket");
    stream.write_all(GREETING.as_bytes()).expect("the client is there");
    let mut received = handed.unread;
    stream.read_to_end(&mut received).expect("the client ends its side");
    let sum: u64 = received.iter().map(|byte| u64::from(*byte)).sum();
    let is_whole = handed.head == UPGRADE.as_bytes();
    write!(stream, "{is_whole} {} {sum}", received.len()).expect("the client is there");
}

fn served(driver: DriverChoice) -> Served {
    Served::of(here().driver(driver), app())
}

/// Takes the connection over behind these requests and with so many bytes right behind the request.
fn assert_taken_over(client: &mut Client, before: &[&str], with_it: usize) {
    let mut bytes: String =
        before.iter().map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    bytes += UPGRADE;
    bytes += &"z".repeat(with_it);
    client.send(bytes);
    for target in before {
        let len = client.answer("GET").body.len();
        assert_eq!(len, if *target == "/big" { BIG_BYTES } else { 5 }, "{target}");
    }
    let mut greeting = [0; GREETING.len()];
    client.stream.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(greeting, GREETING.as_bytes());
    client.send(vec![b'w'; REST_BYTES]).end_sending();
    let len = with_it + REST_BYTES;
    let sum = with_it * usize::from(b'z') + REST_BYTES * usize::from(b'w');
    let said = String::from_utf8(client.rest()).expect("text");
    assert_eq!(said, format!("true {len} {sum}"), "{before:?} {with_it}");
}

#[test]
fn a_connection_is_taken_over_with_all_that_came() {
    for driver in drivers() {
        let served = served(driver);
        for with_it in [0, 100, 5000] {
            assert_taken_over(&mut served.connect(), &[], with_it);
        }
        let totals = served.stop();
        assert_eq!(totals.connections_accepted, totals.connections_closed);
    }
}

#[test]
fn earlier_answers_are_sent_first() {
    for driver in drivers() {
        let served = served(driver);
        for with_it in [0, 100, 5000] {
            assert_taken_over(&mut served.connect(), &["/plain"], with_it);
            assert_taken_over(&mut served.connect(), &["/plain", "/big", "/plain"], with_it);
        }
    }
}

#[test]
fn a_request_with_a_body_is_not_given_away() {
    for driver in drivers() {
        let served = served(driver);
        let mut client = served.connect();
        client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde");
        assert_eq!(client.answer("POST").status, 500);
    }
}
