//! Conversations without faults, and with each fault at each operation: what a client gets is right, and nothing is left.

use shearwater_engine::Http2Options;
use shearwater_engine::io::sim::{Fault, SimOptions};
use testkit::http2::{Session, request_fields};

use super::client::SimHttp2Client;
use crate::harness::app::{big, file_bytes, text_of};
use crate::harness::{Setting, SimWorld};

/// A method, a target, and content.
type Request = (&'static str, &'static str, usize);

/// Requests of one conversation, all at once.
const CONVERSATIONS: [&[Request]; 4] = [
    &[("GET", "/plain/1", 0), ("GET", "/later/2", 0), ("POST", "/buffer/3", 500), ("HEAD", "/big", 0)],
    &[("GET", "/file", 0), ("GET", "/plain/4", 0)],
    &[("POST", "/taken/5", 70_000), ("GET", "/plain/6", 0), ("POST", "/pulled", 300)],
    &[("POST", "/mirror", 900), ("GET", "/panic", 0), ("POST", "/plain/7", 40_000)],
];

/// Time in which what a fault delays is done, and the handler of `/later` has slept.
const DELAYS_MS: u64 = 300;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

/// Returns the body of the right response.
fn right((method, target, len): Request) -> Vec<u8> {
    match target {
        _ if method == "HEAD" => Vec::new(),
        "/big" => big().to_vec(),
        "/file" => file_bytes().to_vec(),
        "/mirror" => content(len),
        "/panic" => b"Internal Server Error\n".to_vec(),
        // Its body is discarded.
        "/plain/7" => text_of(method, target, b"").into_bytes(),
        _ => text_of(method, target, &content(len)).into_bytes(),
    }
}

/// Sends and reads until nothing more happens. The connection may end at any point.
fn exchange(world: &mut SimWorld, client: &mut SimHttp2Client) {
    loop {
        let output = client.session.take_output();
        if !output.is_empty() {
            client.sim.send(&output);
        }
        world.settle();
        let received = client.sim.peer.read();
        client.session.receive(&received).unwrap_or_else(|error| panic!("{error}"));
        if output.is_empty() && received.is_empty() || client.sim.peer.saw_reset() {
            return;
        }
    }
}

/// Runs a conversation; returns its operations. Without a fault that ends a connection each response must be there.
fn converse(requests: &[Request], fault: Option<(u64, Fault)>) -> u64 {
    let sim = SimOptions { fault_at: fault, ..SimOptions::default() };
    let http2 = Http2Options { prior_knowledge: true, ..Http2Options::default() };
    let mut world = SimWorld::new(Setting { sim, http2, ..Setting::default() });
    let mut client = SimHttp2Client { sim: world.connect(), session: Session::new(&[]) };
    exchange(&mut world, &mut client);
    let mut streams = Vec::new();
    for &(method, target, len) in requests {
        let fields = request_fields("http", method, target, &[]);
        streams.push(if len == 0 {
            client.session.begin_whole(&fields)
        } else {
            client.session.begin(&fields)
        });
        if len > 0 {
            client.session.send_data(streams[streams.len() - 1], &content(len), true);
        }
    }
    exchange(&mut world, &mut client);
    world.pass(DELAYS_MS);
    exchange(&mut world, &mut client);
    let may_end = matches!(fault, Some((_, Fault::Rst | Fault::Fin)));
    for (stream, request) in streams.into_iter().zip(requests) {
        match client.session.response(stream) {
            Ok(Some(response)) => assert!(response.body == right(*request), "{request:?}: {response:?}"),
            other => assert!(may_end, "{request:?}: {other:?}"),
        }
    }
    client.sim.peer.finish();
    world.settle();
    let operations = world.net.operations();
    world.end();
    operations
}

#[test]
fn each_fault_at_each_operation() {
    for requests in CONVERSATIONS {
        let operations = converse(requests, None);
        assert!((10..2000).contains(&operations), "{operations} operations");
        for fault in Fault::ALL {
            for at in 0..operations {
                println!("{fault:?} at {at}");
                converse(requests, Some((at, fault)));
            }
        }
    }
}
