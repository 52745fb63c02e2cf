//! An echo over secured connections, with random splits, pauses and faults.

use std::collections::HashMap;
use std::time::Duration;

use shearwater_io::secure::Secure;
use shearwater_io::sim::{Fault, Sim, SimNet, SimOptions};
use shearwater_io::{CloseKind, Driver, Event, Output, ReadEnd, Token};
use testkit::random;

use super::fake::{Fake, FakeClient};
use crate::contract::world::pattern;

/// Bytes held for a connection before its receiving is paused.
const HELD_BYTES_MAX: usize = 8 * 1024;

const CLIENTS: usize = 3;

#[derive(Default)]
struct Echoed {
    held: Vec<u8>,
    is_sending: bool,
    is_paused: bool,
    has_ended: bool,
}

/// Echoes content; closes when the peer has ended and all was sent, or when the connection is broken.
struct Echo {
    driver: Secure<Sim, Fake>,
    clients: HashMap<Token, Echoed>,
}

impl Echo {
    fn turn(&mut self, timeout_ms: u64) {
        self.driver.wait(Some(Duration::from_millis(timeout_ms))).expect("the simulation never fails");
        while let Some(event) = self.driver.next() {
            self.on(event);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { token, listener } => {
                self.clients.insert(token, Echoed::default());
                self.driver.secure(token, listener, &[]);
            }
            Event::Received { token } => {
                let client = self.clients.get_mut(&token).expect("an open connection");
                client.held.extend_from_slice(self.driver.lent());
                if client.held.len() > HELD_BYTES_MAX && !client.is_paused {
                    client.is_paused = true;
                    self.driver.recv_pause(token);
                }
                self.go_on(token);
            }
            Event::ReadClosed { token, end: ReadEnd::Eof } => {
                self.clients.get_mut(&token).expect("an open connection").has_ended = true;
                self.go_on(token);
            }
            Event::ReadClosed { token, end: ReadEnd::Broken(_) }
            | Event::Secured { token, result: Err(_) } => {
                self.clients.remove(&token);
                self.driver.close(token, CloseKind::Normal);
            }
            Event::Unsent { token } => {
                if let Some(client) = self.clients.get_mut(&token) {
                    client.is_sending = true;
                }
            }
            Event::Sent { token, result, .. } => {
                let Some(client) = self.clients.get_mut(&token) else { return };
                client.is_sending = false;
                if result.is_err() {
                    self.clients.remove(&token);
                    return self.driver.close(token, CloseKind::Normal);
                }
                self.go_on(token);
            }
            _ => {}
        }
    }

    fn go_on(&mut self, token: Token) {
        let client = self.clients.get_mut(&token).expect("an open connection");
        if !client.is_sending && !client.held.is_empty() {
            let mut output = Output::new();
            *output.bytes_mut() = std::mem::take(&mut client.held);
            // A close may discard what the kernel hasn't accepted (S7).
            let is_awaited = client.has_ended;
            client.is_sending = !self.driver.send_at_once(token, &mut output, || is_awaited);
            if client.is_paused {
                client.is_paused = false;
                self.driver.recv_resume(token);
            }
        }
        if client.has_ended && !client.is_sending && client.held.is_empty() {
            self.clients.remove(&token);
            self.driver.close(token, CloseKind::Normal);
        }
    }
}

/// Returns what a client sends: its content, and the bytes of it on the wire.
fn script(client: &mut FakeClient, rng: &mut random::Rng, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut content, mut wire) = (Vec::new(), client.handshake());
    for part in 0..rng.u64(0..8) {
        let longest = [10, 1000, 40_000][rng.usize(0..3)];
        let bytes = pattern(rng.usize(0..longest), seed ^ part);
        let record = [1 + bytes.len() / 100, 500, 16_384][rng.usize(0..3)];
        wire.extend(client.seal_in(&bytes, record));
        content.extend(bytes);
        if rng.bool() {
            wire.extend(client.key_update());
        }
    }
    wire.extend(client.close_notify());
    (content, wire)
}

/// Runs a few clients against the echo. Returns the network, and whether all got their content back.
fn converse(options: SimOptions) -> (SimNet, bool) {
    let seed = options.seed;
    let mut rng = random::part(seed, 77);
    let sim = Sim::new(options);
    let net = sim.net();
    let mut echo = Echo { driver: Secure::new(sim, Fake::default()), clients: HashMap::new() };
    let mut clients: Vec<_> = (0..CLIENTS as u64)
        .map(|number| {
            let mut client = FakeClient::default();
            let (content, wire) = script(&mut client, &mut rng, seed ^ number << 32);
            (net.connect(), client, content, wire, 0)
        })
        .collect();
    for _ in 0..20_000 {
        for (peer, _, _, wire, sent) in &mut clients {
            let longest = [3, 300, 30_000][rng.usize(0..3)];
            let until = (*sent + rng.usize(0..longest)).min(wire.len());
            peer.write(&wire[*sent..until]);
            if until == wire.len() && *sent < until {
                peer.finish();
            }
            *sent = until;
        }
        echo.turn(5);
        let is_sent = clients.iter().all(|(_, _, _, wire, sent)| *sent == wire.len());
        if is_sent && net.connections() == 0 && net.waiting() == 0 {
            break;
        }
    }
    net.assert_quiet();
    assert_eq!(echo.driver.secure_counters().expect("it secures").partial_bytes, 0);
    let all = clients.iter_mut().all(|(peer, client, content, _, _)| {
        client.receive(&peer.read());
        assert!(content.starts_with(&client.content), "seed {seed}: other content");
        client.content == *content
    });
    (net, all)
}

#[test]
fn any_split_and_any_order_give_the_same_content() {
    for seed in 0..150 {
        let (_, all) = converse(SimOptions::rough(seed));
        assert!(all, "seed {seed}");
    }
}

#[test]
fn resets_leave_nothing_behind() {
    for seed in 0..150 {
        converse(SimOptions { resets: 0.02, ..SimOptions::rough(seed) });
    }
}

#[test]
fn each_fault_at_each_operation_ends_well() {
    for fault in Fault::ALL {
        let (net, _) = converse(SimOptions { seed: 5, ..SimOptions::default() });
        for at in 0..net.operations().min(120) {
            let options = SimOptions { seed: 5, fault_at: Some((at, fault)), ..SimOptions::default() };
            let (_, all) = converse(options);
            assert!(all || matches!(fault, Fault::Rst | Fault::Fin), "{fault:?} at {at}");
        }
    }
}
