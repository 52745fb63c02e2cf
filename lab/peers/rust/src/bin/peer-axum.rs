//! `axum::serve` with the router of the peers; with a folder, its files by tower-http's `ServeDir`.

#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::serve::ListenerExt;
use tower_http::services::ServeDir;

fn main() -> io::Result<()> {
    let settings = peers::PeerSettings::from_arguments()?;
    let app = match &settings.folder {
        Some(folder) => Router::new().fallback_service(ServeDir::new(folder)),
        None => peers::router(),
    };
    settings.runtime()?.block_on(async {
        let listener = settings.listener()?.tap_io(|stream| {
            // A socket that refuses is closing already.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await
    })
}
