//! A limit on connections that several workers share, on simulated kernels.

use std::sync::Arc;

use shearwater_engine::io::sim::{Sim, SimNet, SimOptions};
use shearwater_engine::io::{Driver, SharedLimit};
use shearwater_engine::{Control, Limits, Setup, Timeouts, Worker};

use crate::harness::app::TestApp;
use crate::harness::{Choices, SimClient, Unit};

/// Turns after which workers that don't become idle are considered broken.
const TURNS_MAX: usize = 30_000;

/// Two workers, each with a listener of its own, as in mode `reuseport`.
struct Pair {
    workers: Vec<(Worker<Sim, TestApp>, SimNet)>,
    control: Arc<Control>,
    limit: SharedLimit,
}

impl Pair {
    fn new(connections_max: usize, sim: impl Fn() -> SimOptions) -> Self {
        let (control, notices) = Control::new();
        drop(notices);
        let control = Arc::new(control);
        let limits = Limits { connections_max, ..Limits::default() };
        let limit = SharedLimit::new(connections_max);
        let mut setup = Setup::new(0, limits, Timeouts::default(), Arc::clone(&control));
        setup.limit = limit.clone();
        let worker = |worker| {
            let sim = Sim::new(SimOptions { connections_max, ..sim() });
            let net = sim.net();
            net.set_limit(limit.clone());
            let mut setup = setup.clone();
            setup.worker = worker;
            (Worker::new(sim, TestApp, setup), net)
        };
        Self { workers: (0..2).map(worker).collect(), control, limit }
    }

    /// Connects a client to a worker's listener; it sends a request at once.
    fn connect(&self, worker: usize) -> SimClient {
        let mut client = SimClient::new(self.workers[worker].1.connect());
        client.send(Unit::get(1).bytes);
        client
    }

    /// Runs turns until no worker has work left.
    fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            let mut is_ready = false;
            for (worker, net) in &mut self.workers {
                if worker.is_busy() || net.is_ready() {
                    worker.turn().expect("the simulated driver doesn't break");
                    is_ready = true;
                }
            }
            if !is_ready {
                return;
            }
        }
        panic!("the workers don't come to rest");
    }

    /// Lets time pass for all.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 64 {
            for (worker, net) in &mut self.workers {
                net.advance(64);
                worker.driver_mut().waker().wake();
            }
            self.settle();
        }
    }

    fn held(&mut self) -> [usize; 2] {
        [0, 1].map(|worker| self.workers[worker].0.driver_mut().connections())
    }

    /// Stops the workers. No place stays taken.
    fn stop(mut self) {
        self.control.stop();
        for (worker, net) in &mut self.workers {
            worker.run().expect("the simulated driver doesn't break");
            net.assert_quiet();
        }
        let totals = self.control.totals();
        assert_eq!(totals.connections_accepted, totals.connections_closed);
        assert_eq!(self.limit.held(), 0);
    }
}

#[test]
fn one_worker_may_hold_all_connections() {
    let mut pair = Pair::new(8, SimOptions::default);
    let mut clients: Vec<_> = (0..8).map(|_| pair.connect(0)).collect();
    pair.settle();
    clients.iter_mut().for_each(|client| client.assert_got(&[Unit::get(1).response]));
    assert_eq!((pair.held(), pair.limit.held()), ([8, 0], 8));
    // A worker that ends returns its places.
    drop(pair.workers.remove(0));
    assert_eq!(pair.limit.held(), 0);
}

#[test]
fn another_worker_makes_room_at_once() {
    let mut pair = Pair::new(8, SimOptions::default);
    let mut clients: Vec<_> = (0..8).map(|_| pair.connect(0)).collect();
    pair.settle();
    pair.pass(5000);
    for client in &mut clients[1..] {
        client.send(Unit::get(1).bytes);
    }
    pair.settle();
    pair.pass(2048);
    let mut newcomer = pair.connect(1);
    pair.settle();
    newcomer.assert_got(&[Unit::get(1).response.last()]);
    assert!(clients[0].peer.saw_fin(), "the longest idle one");
    assert!(clients[1..].iter().all(|client| !client.peer.saw_fin()));
    pair.stop();
}

/// A worker that waits for room gets a place as soon as one of another worker's connections ends.
#[test]
fn a_close_at_one_worker_makes_room_at_the_other() {
    let mut pair = Pair::new(2, SimOptions::default);
    let mut busy: Vec<_> = (0..2).map(|_| SimClient::new(pair.workers[0].1.connect())).collect();
    busy.iter_mut().for_each(|client| client.send("GET /plain/1 HT"));
    pair.settle();
    let mut newcomer = pair.connect(1);
    pair.settle();
    assert_eq!((pair.held(), newcomer.text().as_str()), ([2, 0], ""));
    busy[0].peer.reset();
    pair.settle();
    newcomer.assert_got(&[Unit::get(1).response.last()]);
    pair.stop();
}

/// A connection of another worker ends after one was found to be waiting, and before other workers are asked.
#[test]
fn room_that_another_worker_makes_meanwhile_is_used_at_once() {
    let mut pair = Pair::new(2, SimOptions::default);
    let mut busy: Vec<_> = (0..2).map(|_| SimClient::new(pair.workers[0].1.connect())).collect();
    busy.iter_mut().for_each(|client| client.send("GET /plain/1 HT"));
    pair.settle();
    let mut newcomer = pair.connect(1);
    while pair.control.totals().hit_connections == 0 {
        pair.workers[1].0.turn().expect("the simulated driver doesn't break");
    }
    busy[0].peer.reset();
    while pair.limit.held() == 2 {
        pair.workers[0].0.turn().expect("the simulated driver doesn't break");
    }
    pair.settle();
    newcomer.assert_got(&[Unit::get(1).response.last()]);
    pair.stop();
}

/// With faults of all kinds, nobody waits for ever and the count stays right.
#[test]
fn every_client_of_full_workers_ends_well() {
    for seed in 0..200 {
        let mut choices = Choices::new(seed);
        let mut pair = Pair::new(1 + choices.below(4), || SimOptions::rough(seed));
        let mut clients = Vec::new();
        for _ in 0..30 {
            clients.push(pair.connect(choices.below(2)));
            if choices.once_in(3) {
                pair.settle();
            }
        }
        for _ in 0..200 {
            clients.retain_mut(|client| {
                client.text().is_empty() && !client.peer.saw_reset() && !client.peer.saw_fin()
            });
            if clients.is_empty() {
                break;
            }
            pair.pass(256);
        }
        assert_eq!(clients.len(), 0, "seed {seed}: {:?}", pair.held());
        pair.stop();
    }
}
