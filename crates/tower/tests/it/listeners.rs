//! Listeners of routers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};

use axum::Router;
use axum::routing::get;
use shearwater::{Error, StartError};
use shearwater_tower::{bind, serve};
use testkit::{TIMEOUT, TestClient};

use crate::served::Served;

fn router() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

#[test]
fn at_a_socket_that_listens_with_any_number_of_workers() {
    for workers in [1, 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let served = Served::of(serve(listener, router()).workers(workers));
        assert_eq!(served.address, address);
        for _ in 0..4 {
            assert_eq!(TestClient::connect(address).request("GET", "/", &[]).text(), "served");
        }
    }
}

#[test]
fn at_a_socket_of_unix() {
    let path = std::env::temp_dir().join(format!("shearwater-tower-{}", std::process::id()));
    drop(std::fs::remove_file(&path));
    let running =
        serve(UnixListener::bind(&path).expect("a socket"), router()).workers(1).start().expect("starts");
    let mut stream = UnixStream::connect(&path).expect("connects");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").expect("sends");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an orderly close");
    assert!(response.ends_with("served"), "{response}");
    drop(running);
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn what_can_not_be_listened_at_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    match bind(address, router()).workers(1).start().err() {
        Some(Error::Start(StartError::Bind { error, .. })) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
        other => panic!("{other:?}"),
    }
    assert!(matches!(bind("nowhere", router()).start().err(), Some(Error::Address { .. })));
}
