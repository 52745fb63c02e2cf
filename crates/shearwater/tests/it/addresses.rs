//! Connections per address: an IPv4 client counts the same on IPv4 and dual-stack listeners.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use shearwater::{App, Limits, Request, Response, Server};

use crate::client::{Client, WAIT_MAX};
use crate::served::{Served, here};

fn limited(server: Server) -> Served {
    let limits = Limits { connections_per_address_max: 2, ..Limits::default() };
    Served::of(server.limits(limits), App::of(|_: &Request, _: &mut Response| {}))
}

/// A connection over the limit is reset, usually before the first byte is read, sometimes during `connect`.
#[track_caller]
fn is_refused(address: SocketAddr) {
    let read = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.read(&mut [0])
    });
    assert_eq!(read.expect_err("no end in order").kind(), ErrorKind::ConnectionReset);
}

#[track_caller]
fn responded(client: &mut Client) {
    assert_eq!(client.request("GET", "/", &[]).status, 200);
}

#[test]
fn a_third_connection_is_reset_until_one_of_the_others_has_ended() {
    let served = limited(here());
    let (mut first, mut second) = (served.connect(), served.connect());
    responded(&mut first);
    responded(&mut second);
    is_refused(served.address);
    first.end_sending().is_ended();
    drop(first);
    // Waits until the server has counted the close.
    let begun = Instant::now();
    while served.control.totals().connections_closed < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not closed");
        std::thread::yield_now();
    }
    responded(&mut served.connect());
    drop(second);
    assert_eq!(served.stop().connections_refused, 1);
}

#[test]
fn an_ipv4_address_counts_alike_in_both_its_forms() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: this system has no IPv6");
        return;
    }
    let both_kinds = here().listen("[::]:0");
    let served = limited(both_kinds);
    let [plain, mapped] = served.addresses[..] else { panic!("two listeners") };
    let mapped_v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, mapped.port()));
    let mapped = SocketAddr::from((Ipv4Addr::LOCALHOST, mapped.port()));
    let mut clients = [plain, mapped].map(Client::connect);
    clients.iter_mut().for_each(responded);
    is_refused(plain);
    is_refused(mapped);
    // Another address has its own count.
    let mut others = [mapped_v6; 2].map(Client::connect);
    others.iter_mut().for_each(responded);
    is_refused(mapped_v6);
    drop((clients, others));
    assert_eq!(served.stop().connections_refused, 3);
}
