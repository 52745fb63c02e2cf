//! Records of sends that count as done and may be taken back: they have what the kernel took.

use std::collections::HashMap;

use shearwater_engine::ExchangeEnd;
use shearwater_engine::io::Driver;
use shearwater_engine::io::sim::SimOptions;

use super::{world, world_with};
use crate::harness::unit::get;
use crate::harness::{Setting, Unit};

/// A send that counts as done and is taken back is reported at its real end, with its real bytes.
#[test]
fn reports_clients_that_the_driver_takes_for_served() {
    const WINDOW: usize = 20;
    let response = world().0.send(Unit::get(1).bytes).read().len() as u64;
    for unsent in [0.0, 1.0] {
        let begin = || {
            let sim = SimOptions { unsent, ..SimOptions::default() };
            let (mut world, log) = world_with(Setting { sim, ..Setting::default() });
            let mut client = world.connect();
            client.stop_reading(WINDOW);
            client.send(Unit::get(1).bytes);
            world.settle();
            assert_eq!(log.take(), [], "it has received a part");
            (world, log, client)
        };
        let (mut world, log, client) = begin();
        world.pass(2000);
        client.peer.reset();
        world.end();
        let seen = log.only();
        assert_eq!((seen.end, seen.sent), (ExchangeEnd::Disconnected, WINDOW as u64));
        assert!(seen.ms >= 2000 && seen.first_byte_ms == Some(0), "{seen:?}");

        for is_half_closed in [false, true] {
            let (mut world, log, client) = begin();
            if is_half_closed {
                client.peer.finish();
            }
            world.pass(2000);
            world.read_on(&client);
            let seen = log.only();
            assert_eq!((seen.end, seen.sent), (ExchangeEnd::Complete, response));
            assert!(seen.ms >= 2000, "{seen:?}");
            world.finish(&client);
        }

        let (mut world, log, _client) = begin();
        world.control.stop();
        world.run();
        let seen = log.only();
        assert_eq!((seen.end, seen.sent), (ExchangeEnd::Aborted, WINDOW as u64));
    }
}

/// Random clients on a rough kernel: the records of each, in order, have what the kernel took for it.
#[test]
fn records_have_what_the_kernel_took() {
    let mut ends = HashMap::new();
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let sim = SimOptions { resets: if seed % 3 == 0 { 0.02 } else { 0.0 }, ..SimOptions::rough(seed) };
        let (mut world, log) = world_with(Setting { sim, ..Setting::default() });
        let mut clients: Vec<_> = (0..4).map(|_| (world.connect(), 0)).collect();
        for _ in 0..40 {
            let (client, count) = rng.choice(&mut clients).expect("there are some");
            match rng.u8(..16) {
                0..6 => {
                    for _ in 0..rng.usize(1..4) {
                        let target = rng.choice(["/plain", "/later"]).expect("one");
                        client.send(get(&format!("{target}/{count}")));
                        *count += 1;
                    }
                }
                6 => client.stop_reading(rng.usize(1..500)),
                7..9 => client.peer.set_reading(true),
                9 => client.peer.finish(),
                10 if rng.u8(..4) == 0 => client.peer.reset(),
                11 => world.pass(rng.u64(..200)),
                _ => world.turn(),
            }
        }
        if rng.bool() {
            world.control.stop();
        } else {
            clients.iter().for_each(|(client, _)| client.peer.close());
            world.control.drain(100);
        }
        world.run();
        let seen = log.take();
        let sent: u64 = seen.iter().map(|seen| seen.sent).sum();
        assert_eq!(sent, world.worker.driver_mut().bytes_taken(), "seed {seed}: {seen:#?}");
        for peer in seen.iter().map(|seen| &seen.peer) {
            let own = seen.iter().filter(|seen| seen.peer == *peer);
            let (mut numbers, mut is_cut) = (Vec::new(), false);
            for seen in own {
                assert!(!is_cut || seen.sent == 0, "seed {seed}: sent after a cut response: {seen:?}");
                is_cut |= seen.end != ExchangeEnd::Complete;
                numbers.extend(seen.line.split([' ', '/']).find_map(|word| word.parse::<u32>().ok()));
                *ends.entry(seen.end).or_insert(0) += 1;
            }
            assert!(numbers.is_sorted(), "seed {seed}: {numbers:?}");
        }
    }
    for end in [ExchangeEnd::Complete, ExchangeEnd::Disconnected, ExchangeEnd::Aborted] {
        assert!(ends.get(&end) > Some(&20), "{ends:?}");
    }
}
