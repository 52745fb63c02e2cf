//! Changes of a running server's addresses: new ones are served, removed ones end without a loss, the others stay.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use shearwater::{
    AcceptMode, AddressChange, App, Call, DriverChoice, ListenAddress, Reading, Server, StartError, Timeouts,
    Verbosity, get, later_reading, post,
};
use testkit::{TIMEOUT, TestClient};

use crate::local::local_server;
use crate::served::{Served, connect_unix, drivers, held_app, here, served_app, text, until};

/// Every driver, mode and number of workers of interest.
fn every_kind() -> impl Iterator<Item = (DriverChoice, AcceptMode, usize)> {
    let modes = [(AcceptMode::Reuseport, 1), (AcceptMode::Reuseport, 2), (AcceptMode::Dispatch, 2)];
    drivers().into_iter().flat_map(move |driver| modes.map(|(mode, workers)| (driver, mode, workers)))
}

/// Returns a server with one address of its own, and short deadlines.
fn server(driver: DriverChoice, mode: AcceptMode, workers: usize) -> Server {
    let timeouts = Timeouts { drain_idle_ms: 50, ..Timeouts::default() };
    local_server()
        .verbosity(Verbosity::Off)
        .driver(driver)
        .accept_mode(mode)
        .workers(workers)
        .timeouts(timeouts)
}

fn any() -> ListenAddress {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()
}

/// Changes the addresses, and waits until that is done. Returns the new and the removed ones.
#[track_caller]
fn change(served: &Served, addresses: &[ListenAddress]) -> (Vec<String>, Vec<String>) {
    let change = served.control.prepare_addresses(addresses).expect("they can be bound");
    let (added, removed) = (change.added(), change.removed());
    assert!(change.apply().wait(TIMEOUT), "the workers have the new addresses");
    (added, removed)
}

fn parsed(address: &str) -> SocketAddr {
    address.parse().expect("an address and a port")
}

#[track_caller]
fn assert_refused(address: SocketAddr) {
    let error = TcpStream::connect(address).expect_err("nothing listens there");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// A free port's listener, taken by another program.
fn taken() -> (TcpListener, ListenAddress) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    (listener, address.into())
}

#[test]
fn addresses_are_added_and_removed_in_every_mode() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let served = Served::of(server(driver, mode, workers), served_app());
        let mut stays = served.connect();
        assert_eq!(stays.get("/").text(), "served");
        let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
        for _ in 0..3 {
            let (added, removed) = change(&served, &[any(), new.into()]);
            assert_eq!((added.len(), removed.len()), (1, 0));
            let address = parsed(&added[0]);
            assert_eq!(served.control.addresses(), [served.address.to_string(), added[0].clone()]);
            let mut clients: Vec<_> = (0..10).map(|_| TestClient::connect(address)).collect();
            clients.iter_mut().for_each(|client| assert_eq!(client.get("/").text(), "served"));
            let (added, removed) = change(&served, &[any()]);
            assert_eq!((added, removed), (vec![], vec![address.to_string()]));
            assert_refused(address);
            // Idle connections end soon, in order.
            clients.iter_mut().for_each(|client| client.is_ended());
            assert_eq!(stays.get("/").text(), "served", "on the same connection");
        }
        until("all others are closed", || {
            let totals = served.control.totals();
            totals.connections_accepted - totals.connections_closed == 1
        });
        let totals = served.stop();
        assert_eq!((totals.connections_refused, totals.hit_drain_idle_ms), (0, 30), "{driver:?} {mode}");
    }
}

#[test]
fn every_address_can_be_exchanged() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let served = Served::of(server(driver, mode, workers), served_app());
        let mut address = served.address;
        for host in [2, 3, 4] {
            let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
            let (added, removed) = change(&served, &[new.into()]);
            assert_eq!(removed, [address.to_string()]);
            assert_refused(address);
            address = parsed(&added[0]);
            assert_eq!(TestClient::connect(address).get("/").text(), "served");
        }
        served.control.drain(10_000);
        served.wait();
        assert_refused(address);
    }
}

#[test]
fn unix_sockets_are_added_and_removed_in_every_mode() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let served = Served::of(server(driver, mode, workers), served_app());
        let unix = |mode| ListenAddress::Unix { path: path.clone(), mode };
        for _ in 0..3 {
            let (added, _) = change(&served, &[any(), unix(0o600)]);
            assert_eq!(added, [format!("unix:{}", path.display())]);
            for _ in 0..10 {
                assert_eq!(connect_unix(&path).get("/").text(), "served");
            }
            let bits = || std::fs::metadata(&path).expect("its file").permissions().mode() & 0o777;
            // An error, or a change that isn't applied, leaves the mode.
            let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let taken = taken.local_addr().expect("an address").into();
            assert!(served.control.change_addresses(&[any(), unix(0o660), taken]).is_err());
            drop(served.control.prepare_addresses(&[any(), unix(0o660)]).expect("it can change"));
            assert_eq!(bits(), 0o600);
            // Only its mode changes.
            assert_eq!(change(&served, &[any(), unix(0o660)]), (vec![], vec![]));
            assert_eq!(bits(), 0o660);
            // The link that has replaced the file leads to one that isn't the server's.
            let (moved, other) = (folder.path().join("moved"), folder.path().join("other"));
            std::fs::rename(&path, &moved).expect("moved");
            std::fs::write(&other, "").expect("a file");
            std::os::unix::fs::symlink(&other, &path).expect("a link");
            let before = std::fs::metadata(&other).expect("a file").permissions();
            let changing = served.control.change_addresses(&[any(), unix(0o666)]).expect("it can change");
            assert!(matches!(changing.failed_modes(), [(failed, _)] if *failed == path));
            assert_eq!(std::fs::metadata(&other).expect("a file").permissions(), before);
            std::fs::rename(&moved, &path).expect("moved back");
            change(&served, &[any()]);
            assert!(!path.exists());
        }
        assert_eq!(served.connect().get("/").text(), "served");
        served.stop();
    }
}

#[test]
fn a_present_request_of_a_removed_address_gets_its_response() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let handler = async |call: &mut Call<(), Reading>| {
            while call.read().await.is_some() {}
            "read"
        };
        let app = App::new().route("/", post(later_reading(handler))).route("/", get(text("got")));
        let served = Served::of(server(driver, mode, workers), app);
        let mut clients = [(); 8].map(|()| served.connect());
        for client in &mut clients[..4] {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
        }
        for client in &mut clients[4..] {
            client.send("GET / HTTP/1.1\r\nHo");
        }
        until("all are accepted", || served.control.totals().connections_accepted == 8);
        let (added, _) = change(&served, &[SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)).into()]);
        for client in &mut clients[..4] {
            assert_eq!(client.send("x").response("POST").text(), "read");
        }
        for client in &mut clients[4..] {
            let last = client.send("st: a\r\n\r\n").response("GET");
            assert_eq!((last.text(), last.field("Connection")), ("got", Some("close")), "{driver:?} {mode}");
        }
        clients.iter_mut().for_each(TestClient::is_ended);
        let mut new = TestClient::connect(parsed(&added[0]));
        assert_eq!(new.get("/").field("Connection"), None, "others are kept alive");
        served.stop();
    }
}

#[test]
fn a_taken_address_changes_nothing() {
    for (driver, mode, workers) in every_kind() {
        let served = Served::of(server(driver, mode, workers), served_app());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let (_listener, taken) = taken();
        let addresses = [ListenAddress::unix(&path), any(), taken.clone()];
        let refused = served.control.change_addresses(&addresses[1..]).expect_err("it is taken");
        assert!(matches!(&refused, StartError::Bind { address, .. } if *address == taken), "{refused}");
        assert!(refused.to_string().contains("is taken by another program"), "{refused}");
        served.control.change_addresses(&addresses).expect_err("it is taken");
        assert!(!path.exists(), "what was bound before is closed");
        assert_eq!(served.control.addresses(), [served.address.to_string()]);
        assert_eq!(served.connect().get("/").text(), "served");
        let none = served.control.change_addresses(&[]).expect_err("a server has an address");
        assert!(matches!(none, StartError::NoAddress));
        served.stop();
    }
}

#[test]
fn a_blocked_worker_holds_up_the_next_change() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    let (app, gate) = held_app();
    let served = Served::of(here(), app);
    let mut client = served.connect();
    client.ask("GET", "/wait", &[]);
    gate.is_entered(1);
    let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
    let changing = served.control.change_addresses(&[any(), new.into()]).expect("it can be bound");
    assert!(!changing.wait(Duration::from_millis(10)));
    let refused = served.control.change_addresses(&[any()]).expect_err("the first isn't finished");
    assert!(matches!(refused, StartError::Unfinished), "{refused}");
    gate.open();
    assert!(changing.wait(TIMEOUT));
    assert_eq!(client.response("GET").text(), "waited");
    let added = parsed(&served.control.addresses()[1]);
    assert_eq!(TestClient::connect(added).get("/").text(), "answered");
    served.stop();
}

#[test]
fn a_change_that_is_dropped_changes_nothing() {
    let served = Served::of(here(), served_app());
    let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
    let change = served.control.prepare_addresses(&[new.into()]).expect("it can be bound");
    let added = change.added();
    drop(change);
    assert_refused(parsed(&added[0]));
    assert_eq!(served.connect().get("/").text(), "served");
}

#[test]
fn a_server_that_ends_refuses_changes() {
    let served = Served::of(here(), served_app());
    let control = std::sync::Arc::clone(&served.control);
    served.stop();
    let refused = control.change_addresses(&[any()]).expect_err("it has ended");
    assert!(matches!(refused, StartError::Ending), "{refused}");
}

/// The kernel can't change a socket that is open.
#[test]
fn an_address_that_overlaps_needs_a_restart() {
    let served = Served::of(here(), served_app());
    let port = served.address.port();
    let v4 = ListenAddress::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    let refused = served.control.change_addresses(&[v4]).expect_err("it overlaps");
    assert_eq!(
        refused.to_string(),
        format!(
            "can't listen on 0.0.0.0:{port}: this server's 127.0.0.1:{port} overlaps with it; help: restart the server"
        )
    );
    drop(served);
    if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_err() {
        return println!("skipped: this system has no IPv6");
    }
    let both = ListenAddress::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    let served = Served::of(Server::at(both).verbosity(Verbosity::Off).workers(1), served_app());
    let port = served.address.port();
    let v6 = ListenAddress::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    let v4 = ListenAddress::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    let refused = served.control.change_addresses(&[v6, v4]).expect_err("IPv4 is taken");
    assert!(matches!(refused, StartError::Bind { .. }), "{refused}");
    served.stop();
}

#[test]
fn sockets_that_the_program_gave_stay() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = given.local_addr().expect("an address");
        let served = Served::of(server(driver, mode, workers).listen_on(given), served_app());
        let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
        let (_, removed) = change(&served, &[new.into()]);
        assert_eq!(removed, [served.address.to_string()]);
        change(&served, &[]);
        assert_eq!(served.control.addresses(), [address.to_string()]);
        assert_eq!(TestClient::connect(address).get("/").text(), "served");
        served.stop();
    }
}

#[test]
fn new_addresses_serve_the_app_that_was_reloaded_before() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    let version = |text: &'static str| App::new().route("/", get(self::text(text)));
    let served = Served::of(here().workers(2), version("old"));
    let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
    let change = served.control.prepare_addresses(&[any(), new.into()]).expect("it can be bound");
    let added = parsed(&change.added()[0]);
    // In its queue from the bind on.
    let mut early: Vec<_> = (0..20).map(|_| TestClient::connect(added)).collect();
    let reloading = version("new").reload(&served.control).expect("it serves");
    assert!(change.apply().wait(TIMEOUT));
    reloading.wait(TIMEOUT).expect("no worker is blocked");
    early.iter_mut().for_each(|client| assert_eq!(client.get("/").text(), "new"));
    drop(early);
    served.stop();
}

#[test]
fn connections_in_the_queue_of_a_removed_address_are_served() {
    if testkit::tls::skips("the addresses that it adds are in clear") {
        return;
    }
    for (driver, mode, workers) in every_kind() {
        let served = Served::of(server(driver, mode, workers), served_app());
        let new = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
        let mut clients: Vec<TcpStream> = Vec::new();
        let ask = |address| {
            let mut client = TcpStream::connect(address)?;
            client.set_read_timeout(Some(TIMEOUT))?;
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
            Ok::<_, std::io::Error>(client)
        };
        clients.extend((0..40).map(|_| ask(served.address).expect("connects")));
        let change: AddressChange<'_> = served.control.prepare_addresses(&[new.into()]).expect("bound");
        clients.extend((0..40).map(|_| ask(served.address).expect("connects")));
        assert!(change.apply().wait(Duration::from_secs(10)));
        for mut client in clients {
            let mut response = String::new();
            client.read_to_string(&mut response).expect("an end in order");
            assert!(response.ends_with("served"), "{response}");
        }
        served.stop();
    }
}
