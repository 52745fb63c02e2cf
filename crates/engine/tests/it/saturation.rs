//! Deadlines while the kernel always has more events than a turn handles: connections end in time, and none
//! with unread input.

use shearwater_engine::Timeouts;
use shearwater_engine::io::sim::SimOptions;

use crate::harness::unit::head;
use crate::harness::{Setting, SimClient, SimWorld, Unit};

/// Connections and listeners handled per turn.
const EVENTS_PER_TURN: usize = 320;
/// Clients that always have input in the kernel: more than that.
const BUSY: usize = 400;
const TURN_MS: u64 = 16;
/// Tolerances of deadlines, and of those of idle, writing and lingering connections.
const LATE_MS: u64 = 256;
const LATE_IDLE_MS: u64 = 1300;
/// Most connections held, as a multiple of the arrivals in the permitted time.
const HELD_FACTOR: f64 = 1.1;

/// A world whose kernel has more events in every turn.
struct Saturated {
    world: SimWorld,
    busy: Vec<SimClient>,
}

impl Saturated {
    fn new(timeouts: Timeouts) -> Self {
        let sim = SimOptions { events_per_wait_max: EVENTS_PER_TURN, ..SimOptions::default() };
        let mut world = SimWorld::new(Setting { sim, timeouts, ..Setting::default() });
        let mut busy: Vec<SimClient> = (0..BUSY).map(|_| world.connect()).collect();
        let upload = head("POST", "/plain/1", "Content-Length: 1000000\r\n");
        busy.iter_mut().for_each(|client| client.send(&upload));
        world.settle();
        Self { world, busy }
    }

    fn turn(&mut self) {
        self.world.net.advance(TURN_MS);
        for client in self.busy.iter_mut().filter(|client| client.peer.unread() == 0) {
            client.send(b"some more");
        }
        self.world.turn();
    }

    /// Connects clients in each turn, for twice the time that each may stay. No more are held than arrive in
    /// that time.
    #[track_caller]
    fn assert_held(&mut self, each_turn: usize, stay_ms: u64, begin: impl Fn(&mut SimClient)) {
        let held_max = each_turn as f64 * stay_ms as f64 / TURN_MS as f64 * HELD_FACTOR;
        let mut clients = Vec::new();
        for turn in 0..2 * stay_ms / TURN_MS {
            for _ in 0..each_turn {
                let mut client = self.world.connect();
                begin(&mut client);
                clients.push(client);
            }
            self.turn();
            let held = self.world.in_use().0 - BUSY;
            assert!(held as f64 <= held_max, "{held} held after {turn} turns, not {held_max}");
        }
        let totals = self.world.totals();
        assert!(totals.connections_closed > totals.connections_accepted / 3);
        assert!(self.busy.iter().all(|client| !client.peer.saw_fin()));
    }
}

#[test]
fn silent_connections_end_as_fast_as_they_arrive() {
    let mut saturated = Saturated::new(Timeouts { first_head_ms: 3000, ..Timeouts::default() });
    saturated.assert_held(16, 3000 + LATE_MS, |_| ());
}

/// Each takes two deadlines: the `408`, and the end of the linger.
#[test]
fn half_heads_end_as_fast_as_they_arrive() {
    let mut saturated =
        Saturated::new(Timeouts { first_head_ms: 2000, linger_ms: 2000, ..Timeouts::default() });
    saturated.assert_held(16, 4000 + LATE_MS + LATE_IDLE_MS, |client| client.send(b"GET / HT"));
}

#[test]
fn idle_connections_end_as_fast_as_they_arrive() {
    let mut saturated = Saturated::new(Timeouts { idle_ms: 3000, ..Timeouts::default() });
    saturated.assert_held(16, 3000 + LATE_IDLE_MS, |client| client.send(Unit::get(2).bytes));
}

/// Each needs two deadlines: the first check, and the reset.
#[test]
fn slow_readers_end_as_fast_as_they_arrive() {
    let mut saturated = Saturated::new(Timeouts { write_ms: 2000, ..Timeouts::default() });
    saturated.assert_held(16, 2 * (2000 + LATE_IDLE_MS), |client| {
        client.stop_reading(1000);
        client.send(Unit::big().bytes);
    });
}

/// Requests that arrived while the worker was blocked wait in the kernel and are fetched over many turns.
#[test]
fn a_request_in_the_kernel_gets_its_response_whatever_the_time() {
    const EVENTS_PER_TURN: usize = 40;
    const CLIENTS: usize = 20 * EVENTS_PER_TURN;
    let sim = SimOptions { events_per_wait_max: EVENTS_PER_TURN, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut silent: Vec<SimClient> = (0..CLIENTS).map(|_| world.connect()).collect();
    let mut clients: Vec<SimClient> = (0..CLIENTS).map(|_| world.connect()).collect();
    world.settle();
    clients.iter_mut().for_each(|client| client.send(Unit::get(1).bytes));
    world.net.advance(3_600_000);
    world.settle();
    for client in &mut clients {
        client.assert_got(&[Unit::get(1).response]);
        assert!(!client.peer.saw_fin());
    }
    world.end();
    for client in &mut silent {
        client.assert_last(&[]);
    }
}

/// A turn reads a bounded part of a connection's input. The rest arrived in time.
#[test]
fn a_head_that_is_received_over_many_turns_gets_its_response() {
    let sim = SimOptions { recv_buffer_bytes: 4, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut client = world.connect();
    world.settle();
    client.send(Unit::get(1).bytes);
    while client.peer.unread() > 0 {
        world.turn();
        world.net.advance(11_000);
    }
    world.turn();
    client.assert_got(&[Unit::get(1).response]);
    world.end();
}
