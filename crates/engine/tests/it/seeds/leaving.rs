//! Clients that send anything, stop and disconnect at any time: nothing may be left.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::SimOptions;

use super::asked::{Asked, kernel, order};
use crate::harness::dice::Dice;
use crate::harness::waiting::at_work;
use crate::harness::{Client, Setting, World};

/// Clients of a seed at most.
const CLIENTS_MAX: usize = 5;
/// Requests of a client at most.
const REQUESTS_MAX: usize = 5;

/// Every kind of response, begun and ended in every way.
#[rustfmt::skip]
const TARGETS: &[&str] = &[
    "plain/1", "big", "file", "panic", "buffer/1", "pulled/1", "pulled-panics/1",
    "later/0", "later/1", "later/2", "later/3", "background", "large", "twice/1", "begins-and-panics", "make-panics",
    "taken/0", "taken/1", "taken/2", "mirror/0", "hungry/0", "flood", "speaks-first",
    "unread/0", "unread/1", "unread/2", "at-once/1",
    "stream/0?3", "stream/1?300", "stream/2?3", "stream/3?20", "prebuilt-stream", "bad-field-stream",
    "announced/0?3", "announced/1?10", "announced/2?12",
    "cut/0", "cut/1", "cut/2", "later-panics/0", "later-panics/1", "later-panics/2?begun",
];

fn setting(dice: &mut Dice, seed: u64) -> Setting {
    let sim = kernel(dice, seed, &[230, 2000, 64 * 1024], &[5000, 60_000, 256 * 1024]);
    let sim = SimOptions { resets: [0.0, 0.0, 0.01][dice.below(3)], ..sim };
    let limits = Limits {
        output_bytes_max: [1, 300, 64 * 1024][dice.below(3)],
        buffered_bytes_max: [3000, 40_000, 10_000_000][dice.below(3)],
        calls_max: [1, 3, 1000][dice.below(3)],
        requests_per_connection_max: [0, 0, 3][dice.below(3)],
        body_bytes_max: [50, 500_000][dice.below(2)],
        ..Limits::default()
    };
    Setting { sim, limits, order: order(dice), ..Setting::default() }
}

/// Runs a seed: clients connect, send and disconnect; after the last of them nothing is left.
pub(crate) fn hold(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut world = World::new(setting(&mut dice, seed));
    let mut clients = Vec::new();
    for _ in 0..=dice.below(CLIENTS_MAX) {
        let bytes = requests(&mut dice);
        clients.push(world.connect());
        let client = clients.last_mut().expect("it was just pushed");
        speak(&mut dice, &mut world, client, &bytes);
        if dice.once_in(12) {
            world.control.drain(3000);
        }
        clients.iter_mut().for_each(|client| maybe_go(&mut dice, client));
    }
    world.pass(500);
    world.pass([0, 100_000][dice.below(2)]);
    for client in &mut clients {
        client.read();
        client.peer.reset();
    }
    world.pass(200_000);
    world.end();
    assert_eq!(at_work(), 0, "handlers at work");
}

/// Returns a client's input; one byte of it may be wrong, and its end may be missing.
fn requests(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=dice.below(REQUESTS_MAX) {
        let target = format!("/{}", TARGETS[dice.below(TARGETS.len())]);
        let asked = Asked::new(dice, target, &[0, 3, 400, 70_000, 200_000]);
        asked.maybe_large(dice).push_to(dice, &mut bytes);
    }
    if dice.once_in(5) {
        let at = dice.below(bytes.len());
        bytes[at] = b'\0';
    }
    if dice.once_in(3) {
        bytes.truncate(dice.below(bytes.len()) + 1);
    }
    bytes
}

/// Sends in pieces, may read, lets turns and time pass, and may stop at any byte.
fn speak(dice: &mut Dice, world: &mut World, client: &mut Client, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at([1, 10, 100, 5000, 1 << 30][dice.below(5)].min(bytes.len()));
        client.send(piece);
        bytes = rest;
        if dice.once_in(40) {
            client.peer.set_reading(false);
        }
        if dice.once_in(20) {
            client.peer.set_reading(true);
        }
        if dice.once_in(3) {
            for _ in 0..dice.below(4) {
                world.turn_if_ready();
            }
        }
        if dice.once_in(30) {
            world.pass([5, 300, 3000, 40_000][dice.below(4)]);
        }
        if piece.len() == 1 && dice.once_in(3) {
            return;
        }
    }
}

fn maybe_go(dice: &mut Dice, client: &mut Client) {
    match dice.below(12) {
        0 => client.peer.finish(),
        1 => client.peer.reset(),
        2 => client.peer.close(),
        _ => {}
    }
    client.read();
}
