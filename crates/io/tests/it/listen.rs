//! Listeners: options, ports that are taken, ports that are shared.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use shearwater_io::limits::{KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES};
use shearwater_io::listen::{ListenOptions, bind};
use socket2::SockRef;

fn any_v4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[test]
fn an_address_in_use_is_refused_unless_shared() {
    let first = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = first.local_addr().expect("an address");
    let error = bind(address, ListenOptions::default()).expect_err("it is in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);

    let shared = ListenOptions { reuse_port: true, ..ListenOptions::default() };
    let first = bind(any_v4(), shared).expect("a listener");
    let address = first.local_addr().expect("an address");
    let second = bind(address, shared).expect("another on the same address");
    assert_eq!(second.local_addr().expect("an address"), address);
}

#[test]
fn an_address_is_free_again_after_connections() {
    let listener = bind(any_v4(), ListenOptions::default()).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let peer = TcpStream::connect(address).expect("connects");
    let accepted = listener.accept().expect("accepts").0;
    drop((accepted, listener, peer)); // our side first: it is the one left in TIME_WAIT
    bind(address, ListenOptions::default()).expect("TIME_WAIT is no obstacle");
}

#[test]
fn a_listener_does_not_block() {
    let listener = bind(any_v4(), ListenOptions::default()).expect("a listener");
    assert_eq!(listener.accept().expect_err("nobody is there").kind(), ErrorKind::WouldBlock);
}

#[test]
fn ipv6_takes_ipv4_unless_it_must_not() {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    for only_v6 in [false, true] {
        let options = ListenOptions { only_v6, ..ListenOptions::default() };
        let listener = match bind(any, options) {
            Ok(listener) => listener,
            // A host without IPv6 proves nothing.
            Err(error) => return assert_eq!(error.raw_os_error(), Some(97), "{error}"),
        };
        let port = listener.local_addr().expect("an address").port();
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        assert_eq!(connected, !only_v6);
    }
}

#[test]
fn a_backlog_beyond_the_kernel_s_is_lowered() {
    let options = ListenOptions { backlog: u32::MAX, ..ListenOptions::default() };
    let listener = bind(any_v4(), options).expect("the kernel takes what it can");
    TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
}

/// Accepted connections inherit the listener's options, without a call.
#[test]
fn connections_inherit_the_options_of_their_listener() {
    for (nodelay, keepalive) in [(true, false), (false, true), (true, true), (false, false)] {
        let options = ListenOptions { nodelay, keepalive, ..ListenOptions::default() };
        let listener = bind(any_v4(), options).expect("a listener");
        let _peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        listener.set_nonblocking(false).expect("it may wait");
        let accepted = listener.accept().expect("accepts").0;
        let socket = SockRef::from(&accepted);
        assert_eq!(socket.tcp_nodelay().expect("the option is readable"), nodelay);
        assert_eq!(socket.keepalive().expect("the option is readable"), keepalive);
        if keepalive {
            let times = [socket.tcp_keepalive_time(), socket.tcp_keepalive_interval()];
            let seconds = times.map(|time| time.expect("the option is readable").as_secs());
            assert_eq!(seconds, [KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S].map(u64::from));
            assert_eq!(socket.tcp_keepalive_retries().expect("the option is readable"), KEEPALIVE_PROBES);
        }
    }
}
