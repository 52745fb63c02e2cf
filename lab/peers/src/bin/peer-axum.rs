//! `axum::serve` with a router: `GET /plaintext`, and 404 for everything else; with a folder, its files by tower-http's
//! `ServeDir`.

#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use tower_http::services::ServeDir;

fn main() -> io::Result<()> {
    let settings = peers::PeerSettings::from_arguments()?;
    let app = match &settings.folder {
        Some(folder) => Router::new().fallback_service(ServeDir::new(folder)),
        None => Router::new().route("/plaintext", get(|| async { peers::PLAINTEXT })),
    };
    settings.runtime()?.block_on(async {
        let listener = settings.listener()?.tap_io(|stream| {
            // A socket that refuses is closing already.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await
    })
}
