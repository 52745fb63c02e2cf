//! Two routes of `crates/shearwater/examples/kinds.rs` as an axum router on the engine, whose instructions `cargo lab gate` counts:
//! `cargo run --release -p shearwater-tower --example kinds_axum [ADDRESS]`.
use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use shearwater::DriverChoice;

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let router = Router::new()
        .route("/plaintext", get(|| async { "Hello, World!" }))
        .route("/post-body", post(|body: Bytes| async { body }));
    shearwater_tower::bind(listen, router).workers(1).driver(DriverChoice::Epoll).run()
}
