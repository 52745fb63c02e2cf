//! The client by TLS against a server that is right, and against ones that are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::tests::serve_heads;
use super::*;
use crate::client::{ExpectedResponse, Load, LoadCounts, run};
use crate::file_set::FileContent;
use crate::scenario;

/// More than the client's buffers hold.
const BODY_BYTES: usize = 300_000;

fn body() -> Vec<u8> {
    scenario::file_bytes(BODY_BYTES)
}

/// Serves the body, a thread per connection, for as long as the test's process lives.
fn serve() -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["lab".to_owned()]).expect("a certificate");
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.3").with_no_client_auth();
    let pair = (vec![made.cert.der().clone()], made.signing_key.into());
    let mut config = builder.with_single_cert(pair.0, pair.1).expect("a pair");
    config.ticketer = Ticketer::new().expect("random numbers");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            thread::spawn(move || converse(StreamOwned::new(session, socket)));
        }
    });
    address
}

fn converse(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    let (response, mut unread, mut buffer) = ([head.as_bytes(), &body()].concat(), Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..length]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            unread.drain(..end + 4);
            if stream.write_all(&response).is_err() {
                return;
            }
        }
    }
}

/// Returns the load of a scenario, whose responses must have this body.
fn load(name: &str, address: SocketAddr, body: &[u8]) -> Load {
    let scenario = scenario::find(name).expect("a scenario");
    let expected = ExpectedResponse::with_body(FileContent::of(body));
    Load { connections: 4, receive_buffer_bytes: None, ..scenario.load(address, &expected, 400) }
}

fn counts(load: &Load) -> LoadCounts {
    run(load).expect("loopback works")
}

#[test]
fn responses_of_many_records_are_right_to_the_byte_in_a_closed_loop_and_pipelined() {
    for depth in [1, 4] {
        let right = counts(&Load { depth, ..load("tls-1m", serve(), &body()) });
        assert!(right.responses > 0, "{right:?}");
        assert_eq!((right.socket_errors(), right.wrong_responses()), (0, 0), "{right:?}");
        assert_eq!((right.full_handshakes, right.resumed_handshakes), (4, 0), "{right:?}");
        assert!(right.bytes >= right.responses * BODY_BYTES as u64, "{right:?}");
    }
    let mut other = body();
    other[BODY_BYTES - 1] ^= 1;
    let wrong = counts(&load("tls-1m", serve(), &other));
    assert!(wrong.responses > 0 && wrong.content_errors == wrong.responses, "{wrong:?}");
}

#[test]
fn connections_have_full_handshakes_unless_all_are_resumed() {
    for (name, resumes) in [("tls-full", false), ("tls-resumed", true)] {
        let counts = counts(&load(name, serve(), &body()));
        assert!(counts.responses > 4, "{name}: {counts:?}");
        assert_eq!((counts.socket_errors(), counts.wrong_responses()), (0, 0), "{name}: {counts:?}");
        let (kind, other) = match resumes {
            true => (counts.resumed_handshakes, counts.full_handshakes),
            false => (counts.full_handshakes, counts.resumed_handshakes),
        };
        assert!(kind >= counts.responses && other == 0, "{name}: {counts:?}");
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_an_error() {
    let counts = counts(&load("tls-full", serve_heads(|_| Vec::new()), &body()));
    assert_eq!((counts.responses, counts.full_handshakes), (0, 0), "{counts:?}");
    assert!(counts.socket_errors() > 0, "{counts:?}");
}
