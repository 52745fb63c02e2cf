//! `axum::serve` with a router: `GET /plaintext`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;

fn main() -> io::Result<()> {
    let settings = peers::Settings::from_arguments()?;
    let app = Router::new().route("/plaintext", get(|| async { peers::PLAINTEXT }));
    peers::runtime(&settings)?.block_on(async {
        let listener = peers::listener(settings.listen)?.tap_io(|stream| {
            // A socket that refuses is closing already.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await
    })
}
