//! `ConnectInfo`: the client's address on each request of each connection.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;

use crate::client::Client;
use crate::serve::serve;

async fn tag(ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-peer", peer.to_string().parse().unwrap());
    response
}

#[test]
fn each_connection_has_its_own_address() {
    let show = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let server = serve(Router::new().route("/", get(show)).layer(middleware::from_fn(tag)));
    let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(server.addr)).collect();
    for _ in 0..2 {
        for client in &mut clients {
            let local = client.stream().local_addr().unwrap().to_string();
            let response = client.ask("GET", "/", &[], b"");
            assert_eq!((response.text(), response.head.field("x-peer")), (local.as_str(), Some(local.as_str())));
        }
    }
}
