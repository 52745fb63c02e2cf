//! Connections dispatched to several workers on the simulated kernel: distributed, drained, none lost.

use std::sync::Arc;

use shearwater_engine::io::inbox::{Refused, inbox};
use shearwater_engine::io::sim::{Sim, SimArrival, SimNet, SimOptions};
use shearwater_engine::io::{Dispatcher, Driver};
use shearwater_engine::{Control, Limits, Setup, Timeouts, Worker};

use crate::harness::app::TestApp;
use crate::harness::{SimClient, Unit};

/// Turns after which workers that don't become idle are considered broken.
const TURNS_MAX: usize = 30_000;
const WORKERS: usize = 4;

/// Workers and their dispatcher.
struct Crew {
    workers: Vec<(Worker<Sim, TestApp>, SimNet)>,
    dispatcher: Option<Dispatcher<SimArrival>>,
    control: Arc<Control>,
    net: SimNet,
}

impl Crew {
    /// Creates inboxes for `capacity` connections, and workers for `connections_max`.
    fn new(seed: u64, capacity: usize, connections_max: usize) -> Self {
        let (control, notices) = Control::new();
        // The notices are not read.
        drop(notices);
        let control = Arc::new(control);
        let setup = Setup::new(0, Limits::default(), Timeouts::default(), Arc::clone(&control));
        let mut senders = Vec::new();
        let mut workers = Vec::new();
        for worker in 0..WORKERS {
            let kernel = if seed == 0 { SimOptions::default() } else { SimOptions::rough(seed) };
            let (sender, inbox) = inbox(capacity);
            let sim = Sim::with_inbox(SimOptions { listeners: 0, connections_max, ..kernel }, inbox);
            let net = sim.net();
            let mut setup = setup.clone();
            setup.worker = worker;
            workers.push((Worker::new(sim, TestApp, setup), net));
            senders.push(sender);
        }
        let net = Sim::new(SimOptions { seed, ..SimOptions::default() }).net();
        Self { workers, dispatcher: Some(Dispatcher::new(senders)), control, net }
    }

    fn dispatcher(&mut self) -> &mut Dispatcher<SimArrival> {
        self.dispatcher.as_mut().expect("it has not ended")
    }

    /// Dispatches a client's connection with its request, once there is room.
    fn connect(&mut self, unit: &Unit) -> SimClient {
        let (peer, mut arrival) = self.net.arrive();
        let mut client = SimClient::new(peer);
        client.send(&unit.bytes);
        loop {
            match self.dispatcher().dispatch(arrival, 0) {
                Ok(()) => return client,
                Err(Refused::Full(back)) => {
                    arrival = back;
                    self.dispatcher().wake();
                    self.settle();
                }
                Err(Refused::Gone(_)) => panic!("the workers live"),
            }
        }
    }

    /// Runs turns until no worker has work left.
    fn settle(&mut self) {
        for (worker, net) in &mut self.workers {
            let mut turns = 0;
            while worker.is_busy() || net.is_ready() || net.next_due_ms().is_some() {
                worker.turn().expect("the simulated driver doesn't break");
                turns += 1;
                assert!(turns < TURNS_MAX, "the worker doesn't come to rest");
            }
        }
    }

    fn accepted(&mut self) -> Vec<usize> {
        self.workers.iter_mut().map(|(worker, _)| worker.driver_mut().connections()).collect()
    }

    /// Runs the workers after a drain or stop until they end.
    fn run(&mut self) {
        for (worker, net) in &mut self.workers {
            worker.run().expect("the simulated driver doesn't break");
            net.assert_quiet();
            assert_eq!(worker.in_use(), (0, 0, 0), "(connections, blocks, timers) still in use");
        }
        let totals = self.control.totals();
        assert_eq!(totals.connections_accepted, totals.connections_closed);
    }
}

#[test]
fn each_worker_gets_as_many_and_all_clients_their_responses() {
    for seed in 0..20 {
        let mut crew = Crew::new(seed, 16, usize::MAX);
        let mut clients: Vec<_> = (0..101).map(|_| crew.connect(&Unit::get(1))).collect();
        crew.dispatcher().wake();
        crew.settle();
        let accepted = crew.accepted();
        assert_eq!(accepted.iter().sum::<usize>(), 101, "seed {seed}");
        // A worker that was full in its turn gets one less, and the next one more.
        assert!(accepted.iter().all(|count| count.abs_diff(25) <= 16), "seed {seed}: {accepted:?}");
        for client in &mut clients {
            client.assert_got(&[Unit::get(1).response]);
            client.peer.finish();
        }
        crew.settle();
        assert_eq!(crew.accepted(), [0; WORKERS], "seed {seed}");
    }
}

#[test]
fn a_drain_serves_dispatched_connections() {
    for seed in 0..50 {
        let mut crew = Crew::new(seed, 64, usize::MAX);
        let mut early: Vec<_> = (0..50).map(|_| crew.connect(&Unit::get(1))).collect();
        // No worker was woken: all connections are still in the inboxes.
        crew.control.drain(60_000);
        if seed % 2 == 0 {
            crew.settle();
        }
        let mut late: Vec<_> = (0..50).map(|_| crew.connect(&Unit::get(2))).collect();
        drop(crew.dispatcher.take());
        crew.run();
        for (clients, unit) in [(&mut early, Unit::get(1)), (&mut late, Unit::get(2))] {
            for client in clients {
                // The order may follow a request of the same turn; then the connection closes silently.
                let is_last = client.text().contains("Connection: close");
                assert!(is_last || seed > 0, "seed {seed}");
                let response = unit.response.clone();
                client.assert_last(&[if is_last { response.last() } else { response }]);
            }
        }
        assert_eq!(crew.control.totals().requests, 100, "seed {seed}");
    }
}

#[test]
fn a_drain_of_full_workers_serves_all() {
    let mut crew = Crew::new(0, 8, 2);
    let mut clients: Vec<_> = (0..24).map(|_| crew.connect(&Unit::get(1))).collect();
    crew.control.drain(60_000);
    drop(crew.dispatcher.take());
    crew.run();
    for client in &mut clients {
        client.assert_got(&[Unit::get(1).response.last()]);
    }
}

#[test]
fn a_stop_closes_dispatched_connections_and_waits_for_the_acceptor() {
    let mut crew = Crew::new(0, 64, usize::MAX);
    let clients: Vec<_> = (0..10).map(|_| crew.connect(&Unit::get(1))).collect();
    crew.control.stop();
    crew.settle();
    let late = crew.connect(&Unit::get(1));
    drop(crew.dispatcher.take());
    crew.run();
    let is_closed = |client: &SimClient| client.peer.saw_reset() || client.peer.saw_fin();
    for client in clients.iter().chain([&late]) {
        drop(client.peer.read());
        assert!(is_closed(client), "not left waiting");
    }
    assert_eq!(crew.control.totals().requests, 0);
}

#[test]
fn passes_over_a_failed_worker() {
    let mut crew = Crew::new(0, 64, usize::MAX);
    let mut lost = Vec::new();
    let mut kept = Vec::new();
    for number in 0..40 {
        let client = crew.connect(&Unit::get(1));
        if number % WORKERS == 1 { lost.push(client) } else { kept.push(client) }
    }
    drop(crew.workers.remove(1));
    kept.extend((0..30).map(|_| crew.connect(&Unit::get(1))));
    crew.dispatcher().wake();
    crew.settle();
    assert_eq!(crew.accepted(), [20, 20, 20]);
    kept.iter_mut().for_each(|client| client.assert_got(&[Unit::get(1).response]));
    assert_eq!(lost.len(), 10);
}
