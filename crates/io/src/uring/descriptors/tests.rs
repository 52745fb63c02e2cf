//! Connections with and without descriptors, and shortages.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::*;
use crate::driver::UringOptions;
use crate::{CloseKind, Driver, Event, Output, ReadEnd};

/// Returns a driver with a bound of descriptors, and its address. `None` if the kernel can't store files.
fn with_descriptors(descriptors_max: usize) -> Option<(Uring, std::net::SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let options = UringOptions { descriptors_max, ..UringOptions::default() };
    let driver = Uring::new(vec![listener], options).map_err(|why| println!("skipped: {why}")).ok()?;
    if driver.descriptors.store.is_none() {
        println!("skipped: this kernel can't store files");
        return None;
    }
    Some((driver, address))
}

/// Adds connections for which the kernel holds no entry.
fn fill(driver: &mut Uring, count: usize) {
    for _ in 0..count {
        driver.conns.slots.insert(File::open("/dev/null").expect("the file opens").into());
        driver.descriptors.note_opened();
    }
}

/// Takes turns until `count` connections were accepted.
fn accept(driver: &mut Uring, count: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    while tokens.len() < count {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while let Some(event) = driver.next() {
            if let Event::Accepted { token, .. } = event {
                tokens.push(token);
            }
        }
    }
    driver.wait(Some(Duration::ZERO)).expect("the receives are submitted");
    tokens
}

#[test]
fn stores_nothing_if_each_connection_may_have_a_descriptor() {
    const BOUND: usize = 40;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let options = UringOptions { connections_max: BOUND, descriptors_max: BOUND, ..UringOptions::default() };
    let Ok(mut driver) = Uring::new(vec![listener], options).map_err(|why| println!("skipped: {why}")) else {
        return;
    };
    let _peers: Vec<_> = (0..BOUND).map(|_| TcpStream::connect(address).expect("connects")).collect();
    let tokens = accept(&mut driver, BOUND);
    for _ in 0..5 {
        driver.wait(Some(Duration::from_millis(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
    let is_stored = |token: &&Token| driver.conns.slots.open(**token).is_some_and(|slot| slot.fd.is_none());
    assert_eq!(tokens.iter().filter(is_stored).count(), 0);
}

#[test]
fn busy_connections_stay_within_the_bound() {
    const BOUND: usize = 64;
    const CROWD: usize = 150;
    const LEN: usize = 600_000; // more than a quantum
    let Some((mut driver, address)) = with_descriptors(BOUND) else { return };
    let (mut peers, mut tokens) = (Vec::new(), Vec::new());
    while tokens.len() < CROWD {
        peers.extend((0..50).map(|_| TcpStream::connect(address).expect("connects")));
        tokens.extend(accept(&mut driver, 50));
    }
    for token in &tokens {
        let mut output = Output::new();
        output.bytes_mut().resize(LEN, b'x');
        driver.send(*token, output);
        assert!(driver.descriptors.open <= BOUND);
    }
    // All are sent nevertheless, in any order.
    let readers: Vec<_> =
        peers.into_iter().map(|peer| std::thread::spawn(|| read_exactly(peer, LEN))).collect();
    let mut sent = 0;
    while sent < CROWD {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while let Some(event) = driver.next() {
            sent += usize::from(matches!(event, Event::Sent { result: Ok(()), .. }));
        }
        assert!(driver.descriptors.open <= BOUND);
    }
    readers.into_iter().for_each(|reader| reader.join().expect("everything comes"));
}

fn read_exactly(mut peer: TcpStream, len: usize) {
    peer.read_exact(&mut vec![0; len]).expect("everything comes");
}

#[test]
fn a_turn_examines_a_bounded_number_of_slots() {
    const MORE: usize = 500;
    let Some((mut driver, _)) = with_descriptors(0) else { return };
    crate::os::raise_descriptor_limit(u64::MAX).expect("the limit can be raised");
    fill(&mut driver, DESCRIPTOR_SCAN_MAX + MORE);
    assert!(driver.ring.submit_all());
    driver.store_surplus();
    assert_eq!(driver.descriptors.open, MORE);
    driver.store_surplus();
    assert_eq!(driver.descriptors.open, 0);
}

/// Descriptors of files in the store can be closed, and opened again.
#[test]
fn a_file_that_cannot_be_stored_keeps_its_descriptor_only() {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let _peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    assert_eq!(driver.descriptors.open, 0, "it is stored");
    // A table doesn't take a descriptor of this kind.
    let path = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
    driver.conns.slots.insert(path.expect("a descriptor"));
    driver.descriptors.note_opened();
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    assert!(driver.descriptors.is_full && driver.descriptors.open == 1);
    assert!(driver.open_descriptor(token) && driver.descriptors.open == 2);
    driver.wait(Some(Duration::ZERO)).expect("the driver waits");
    assert!(driver.descriptors.is_full && driver.descriptors.open == 1);
    assert!(driver.conns.slots.open(token).is_some_and(|slot| slot.fd.is_none()));
}

#[test]
fn a_turn_with_a_shortage_examines_a_bounded_number_of_slots() {
    let Some((mut driver, _)) = with_descriptors(DESCRIPTORS_MIN) else { return };
    fill(&mut driver, DESCRIPTORS_MIN);
    for slot in 0..DESCRIPTORS_MIN {
        driver.conns.slots.at(slot).expect("it is used").1.flags.set(Flags::QUEUED);
    }
    let mut calls = 0;
    while driver.descriptors.scan_left > 0 {
        assert!(!driver.store_some());
        calls += 1;
    }
    assert_eq!(calls, DESCRIPTOR_SHORTAGE_SCAN_MAX.div_ceil(driver.conns.slots.len()));
    driver.conns.slots.at(0).expect("it is used").1.flags.clear(Flags::QUEUED);
    assert!(!driver.store_some(), "no more in this turn");
    driver.descriptors.begin_turn();
    assert!(driver.store_some());
}

#[test]
fn frees_descriptors_for_new_connections_in_the_middle_of_a_turn() {
    let Some((mut driver, _)) = with_descriptors(100) else { return };
    fill(&mut driver, 100);
    assert!(!driver.descriptors.have_room() && driver.store_some());
    assert_eq!(driver.descriptors.open, 100 - DESCRIPTORS_MIN);
}

#[test]
fn active_connections_keep_their_descriptors() {
    let Some((mut driver, address)) = with_descriptors(80) else { return };
    let mut peers: Vec<_> = (0..75).map(|_| TcpStream::connect(address).expect("connects")).collect();
    let tokens = accept(&mut driver, peers.len());
    // Each turn one connection is active, and idle ones are stored until 70 have a descriptor.
    for _ in 0..20 {
        peers[74].write_all(b"x").expect("the queue has room");
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
    let has_descriptor =
        |driver: &Uring, token| driver.conns.slots.open(token).is_some_and(|slot| slot.fd.is_some());
    assert_eq!(driver.descriptors.open, 70);
    assert!(has_descriptor(&driver, tokens[74]) && !has_descriptor(&driver, tokens[0]));
}

/// Another driver of the process, or this one, has found no descriptor.
#[test]
fn idle_connections_give_up_their_descriptors_in_a_shortage() {
    let Some((mut driver, _)) = with_descriptors(80) else { return };
    fill(&mut driver, 10);
    assert!(driver.ring.submit_all());
    driver.store_surplus();
    assert_eq!(driver.descriptors.open, 10);
    driver.descriptors.shortages = driver.descriptors.shortages.wrapping_sub(1);
    driver.store_surplus();
    assert_eq!(driver.descriptors.open, 0);
}

#[test]
fn a_send_waits_for_a_descriptor() {
    for is_at_once in [false, true] {
        send_without_a_descriptor(is_at_once);
    }
}

fn send_without_a_descriptor(is_at_once: bool) {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let mut peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    assert_eq!(driver.descriptors.open, 0, "it is stored");
    driver.descriptors.is_short = true; // as if none could be opened
    let mut output = Output::new();
    output.bytes_mut().extend_from_slice(b"late");
    if is_at_once {
        assert!(!driver.send_at_once(token, &mut output, || false));
    } else {
        driver.send(token, output);
    }
    assert!(driver.next().is_none() && driver.conns.slots.open(token).is_some());
    // The wait is bounded, and the next turn has one.
    let mut is_sent = false;
    while !is_sent {
        driver.wait(None).expect("the driver waits");
        while let Some(event) = driver.next() {
            is_sent |= matches!(event, Event::Sent { result: Ok(()), .. });
        }
    }
    let mut got = [0; 4];
    peer.read_exact(&mut got).expect("it comes");
    assert_eq!(&got, b"late");
}

#[test]
fn a_shutdown_needs_no_descriptor() {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let mut peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    driver.descriptors.is_short = true; // as if none could be opened
    driver.shutdown_write(token);
    assert_eq!(driver.descriptors.open, 0);
    assert_eq!(peer.read(&mut [0]).expect("it reads"), 0, "the FIN has come");
    peer.write_all(b"x").expect("the other side is open");
    let mut is_received = false;
    while !is_received {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while let Some(event) = driver.next() {
            is_received |= matches!(event, Event::Received { .. });
        }
    }
}

#[test]
fn a_detach_without_a_descriptor_fails_and_can_be_repeated() {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let _peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    let mut results = Vec::new();
    driver.descriptors.is_short = true; // as if none could be opened
    for _ in 0..2 {
        driver.detach(token);
        let count = results.len();
        while results.len() == count {
            while let Some(event) = driver.next() {
                let Event::Detached { result, .. } = event else { panic!("{event:?}") };
                results.push(result.map(drop).map_err(|error| error.raw_os_error()));
            }
            driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        }
    }
    assert_eq!(results, [Err(Some(libc::EMFILE)), Ok(())]);
    driver.close(token, CloseKind::Normal);
    assert!(driver.descriptors.open == 0 && matches!(driver.next(), Some(Event::Closed { .. })));
}

#[test]
fn a_receive_waits_for_a_descriptor() {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let mut peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    driver.recv_pause(token);
    let mut received = 0;
    let mut turn = |driver: &mut Uring| {
        driver.wait(None).expect("the driver waits");
        while let Some(event) = driver.next() {
            received += usize::from(matches!(event, Event::Received { .. }));
        }
        received
    };
    peer.write_all(b"x").expect("the queue has room");
    while turn(&mut driver) < 1 {}
    driver.wait(Some(Duration::from_millis(1))).expect("the driver waits");
    assert!(driver.next().is_none());
    driver.descriptors.is_short = true;
    for _ in 0..3 {
        driver.recv_resume(token);
        driver.recv_pause(token);
    }
    driver.recv_resume(token);
    assert_eq!(driver.rearm.len(), 1);
    peer.write_all(b"y").expect("the queue has room");
    while turn(&mut driver) < 2 {}
}

#[test]
fn a_reset_while_paused_shows_without_a_descriptor() {
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let mut peer = TcpStream::connect(address).expect("connects");
    let token = accept(&mut driver, 1)[0];
    driver.recv_pause(token);
    peer.write_all(b"x").expect("the queue has room");
    let mut received = 0;
    while received == 0 {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        received += std::iter::from_fn(|| driver.next()).count();
    }
    driver.wait(Some(Duration::ZERO)).expect("the end is watched");
    assert!(driver.next().is_none());
    socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("it can");
    drop(peer);
    let mut end = None;
    while end.is_none() {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        driver.descriptors.is_short = true; // as if none could be opened
        end = driver.next();
    }
    assert!(matches!(end, Some(Event::ReadClosed { end: ReadEnd::Broken(_), .. })), "{end:?}");
    assert_eq!(driver.descriptors.open, 0);
}

#[test]
fn a_driver_gives_back_the_memory_of_a_crowd() {
    const CROWD: usize = 1000;
    let Some((mut driver, address)) = with_descriptors(0) else { return };
    let mut tokens = Vec::new();
    let mut peers = Vec::new();
    while tokens.len() < CROWD {
        peers.extend((0..100).map(|_| TcpStream::connect(address).expect("connects")));
        tokens.extend(accept(&mut driver, 100));
    }
    assert!(driver.descriptors.open == 0 && driver.conns.slots.len() >= CROWD);
    tokens[1..].iter().for_each(|token| driver.close(*token, CloseKind::Normal));
    while driver.connections() > 1 {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
    while !driver.rest() {
        driver.wait(Some(Duration::ZERO)).expect("the driver waits");
        while driver.next().is_some() {}
    }
    assert_eq!(driver.conns.slots.len(), crate::slot_array::CHUNK);
    driver.close(tokens[0], CloseKind::Reset);
    while driver.connections() > 0 {
        driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
        while driver.next().is_some() {}
    }
    assert!(driver.rest() && driver.conns.slots.len() == 0);
}
