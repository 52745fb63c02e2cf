//! The router of `peer-axum` on Shearwater's engine: `peer-ours-axum ADDRESS:PORT [fast]`. With `fast`, a fast route for
//! `/plaintext` is in front of it.

#![forbid(unsafe_code)]

use std::io;

use shearwater::{App, Fast, get};

fn main() -> io::Result<()> {
    let settings = peers::PeerSettings::from_arguments()?;
    let mut serve = shearwater_tower::bind(settings.listen.to_string(), peers::router()).workers(1);
    if std::env::args().nth(2).as_deref() == Some("fast") {
        let app = App::new().route("/plaintext", get(Fast::text(peers::PLAINTEXT)));
        serve = serve.fast(app);
    }
    serve.server(|server| server.backlog(peers::BACKLOG)).run().map_err(io::Error::other)
}
