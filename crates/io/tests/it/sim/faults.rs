//! Each fault by script, at each operation; and each probability, one at a time.

use std::io::Write;
use std::rc::Rc;

use shearwater_io::limits::{ACCEPTS_PER_TURN_MAX, RECV_AFTER_PAUSE_MAX, SEND_BYTES_PER_TURN_MAX};
use shearwater_io::sim::{Fault, Sim, SimOptions};
use shearwater_io::{
    AcceptError, CloseKind, Driver, Event, FileSlice, Item, Output, SendError, Shared, SharedFile,
};

use super::echo::{converse, said};
use super::{accepted, turn, turns};
use crate::contract::world::{pattern, plain};

#[test]
fn each_fault_at_each_operation_ends_well() {
    let operations = converse(SimOptions::default()).operations;
    assert!(operations > 20, "a long enough conversation: {operations}");
    for fault in Fault::ALL {
        for at in 0..operations {
            let outcome = converse(SimOptions { fault_at: Some((at, fault)), ..SimOptions::default() });
            let harmless = matches!(fault, Fault::Short | Fault::Eagain | Fault::Delay);
            let complete = outcome.echoed.iter().filter(|echoed| **echoed == said()).count();
            let least = if harmless { 3 } else { 2 };
            assert!(complete >= least, "{fault:?} at {at}: {complete} of 3 complete");
            assert!(outcome.echoed.iter().all(|echoed| said().starts_with(echoed)), "{fault:?} at {at}");
        }
    }
}

#[test]
fn a_reset_by_script_breaks_and_a_fin_ends() {
    let broken = |fault| {
        let operations = converse(SimOptions::default()).operations;
        let options = |at| SimOptions { fault_at: Some((at, fault)), ..SimOptions::default() };
        (0..operations)
            .filter(|at| converse(options(*at)).echoed.iter().any(|echoed| *echoed != said()))
            .count()
    };
    assert!(broken(Fault::Rst) > 5);
    assert!(broken(Fault::Fin) > 0);
}

#[test]
fn short_reads_lend_less() {
    let (mut sim, peer, _) = accepted(SimOptions { short_reads: 1.0, ..SimOptions::default() });
    peer.write(&pattern(1000, 1));
    let (mut got, mut receives) = (Vec::new(), 0);
    while sim.net().is_ready() {
        sim.wait(None).expect("never fails");
        while let Some(event) = sim.next() {
            assert!(matches!(event, Event::Received { .. }));
            assert!(sim.lent().len() < 1000);
            got.extend_from_slice(sim.lent());
            receives += 1;
        }
    }
    assert_eq!(got, pattern(1000, 1));
    assert!(receives > 1);
}

#[test]
fn short_writes_resume_in_later_turns() {
    let (mut sim, peer, token) = accepted(SimOptions { short_writes: 1.0, ..SimOptions::default() });
    sim.send(token, plain(&pattern(1000, 1)));
    assert!((1..1000).contains(&sim.send_progress(token)));
    let mut taken = 0;
    loop {
        assert!(sim.send_progress(token) >= taken, "S6");
        taken = sim.send_progress(token);
        if let [Event::Sent { result: Ok(()), .. }] = turn(&mut sim)[..] {
            break;
        }
    }
    assert_eq!(peer.read(), pattern(1000, 1));
}

#[test]
fn arrivals_after_a_pause_are_bounded() {
    let options = SimOptions { data_after_pause: 1.0, recv_buffer_bytes: 10_000, ..SimOptions::default() };
    let (mut sim, peer, token) = accepted(options);
    sim.recv_pause(token);
    peer.write(&pattern(200_000, 1));
    peer.finish();
    turns(&mut sim);
    for _ in 0..20 {
        turn(&mut sim);
        sim.recv_pause(token);
    }
    assert_eq!(peer.unread(), 200_000 - RECV_AFTER_PAUSE_MAX);
    sim.recv_resume(token);
    let ends = turns(&mut sim).iter().filter(|event| matches!(event, Event::ReadClosed { .. })).count();
    assert_eq!((peer.unread(), ends), (0, 1));
}

#[test]
fn connections_after_a_pause_are_those_queued_before() {
    let mut sim = Sim::new(SimOptions { accepts_after_pause: 1.0, ..SimOptions::default() });
    let net = sim.net();
    let _early = net.connect_many(100);
    sim.accept_pause();
    let _late = net.connect_many(100);
    assert_eq!(turns(&mut sim).len(), ACCEPTS_PER_TURN_MAX);
    assert_eq!(net.waiting(), 200 - ACCEPTS_PER_TURN_MAX);
    sim.accept_resume();
    assert_eq!(turns(&mut sim).len(), 200 - ACCEPTS_PER_TURN_MAX);

    let _few = net.connect_many(3);
    sim.accept_pause();
    let _late = net.connect_many(3);
    assert_eq!((turns(&mut sim).len(), net.waiting()), (3, 3));
}

#[test]
fn a_fin_may_come_a_turn_after_the_bytes() {
    for (fin_with_data, events) in [(1.0, 2), (0.0, 1)] {
        let (mut sim, peer, _) = accepted(SimOptions { fin_with_data, ..SimOptions::default() });
        peer.write(b"last");
        peer.finish();
        assert_eq!(turn(&mut sim).len(), events);
        assert_eq!(turns(&mut sim).len(), 2 - events);
    }
}

#[test]
fn accepting_fails_by_request_and_at_the_limit() {
    let mut sim = Sim::new(SimOptions { connections_max: 1, ..SimOptions::default() });
    let net = sim.net();
    let _peers = net.connect_many(2);
    net.fail_accept(AcceptError::Memory);
    assert!(matches!(turns(&mut sim)[..], [Event::AcceptFailed { error: AcceptError::Memory }]));
    sim.accept_resume();
    let events = turns(&mut sim);
    let [Event::Accepted { token, .. }, Event::AcceptFailed { error: AcceptError::ProcessDescriptors }] =
        events[..]
    else {
        panic!("one connection, and the limit, not {events:?}");
    };
    sim.close(token, CloseKind::Normal);
    assert!(matches!(turns(&mut sim)[..], [Event::Closed { .. }]));
    assert_eq!(net.waiting(), 1);
    sim.accept_resume();
    assert!(matches!(turns(&mut sim)[..], [Event::Accepted { .. }]));
}

#[test]
fn files_are_read_within_the_turn_s_bound() {
    let path = std::env::temp_dir().join(format!("shearwater-sim-{}", std::process::id()));
    let len = SEND_BYTES_PER_TURN_MAX + 100_000;
    let content = pattern(len as usize, 1);
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("temp");
    std::fs::remove_file(&path).expect("just made");
    file.write_all(&content).expect("written");
    let file = Rc::new(SharedFile::new(file));
    let slice = |len| Item::File(FileSlice { file: Rc::clone(&file), offset: 10, len });

    let (mut sim, peer, token) =
        accepted(SimOptions { send_buffer_bytes: usize::MAX, ..SimOptions::default() });
    let mut whole = Output::new();
    whole.bytes_mut().extend_from_slice(b"head");
    whole.push(slice(len - 10));
    whole.push(Item::Shared(Shared::Static(b"tail")));
    sim.send(token, whole);
    assert_eq!(sim.send_progress(token), 4 + SEND_BYTES_PER_TURN_MAX);
    assert!(matches!(turns(&mut sim)[..], [Event::Sent { result: Ok(()), .. }]));
    assert_eq!(peer.read(), [b"head", &content[10..], b"tail"].concat());

    let mut short = Output::new();
    short.push(slice(len));
    sim.send(token, short);
    let events = turns(&mut sim);
    assert!(matches!(events[..], [Event::Sent { result: Err(SendError::FileShort), .. }]), "{events:?}");
    assert_eq!(peer.read(), &content[10..]);
}
