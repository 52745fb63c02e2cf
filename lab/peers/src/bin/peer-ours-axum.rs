//! The router of `peer-axum` on Shearwater's engine: `GET /plaintext`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::routing::get;

fn main() -> io::Result<()> {
    let settings = peers::PeerSettings::from_arguments()?;
    let app = Router::new().route("/plaintext", get(|| async { peers::PLAINTEXT }));
    let serve = shearwater_tower::bind(settings.listen.to_string(), app).workers(1);
    serve.server(|server| server.backlog(peers::BACKLOG)).run().map_err(io::Error::other)
}
