//! tower-http's `ServeDir` under `axum::serve`: the files of a folder.

#![forbid(unsafe_code)]

use std::io;

use axum::Router;
use axum::serve::ListenerExt;
use tower_http::services::ServeDir;

fn main() -> io::Result<()> {
    let settings = peers::Settings::from_arguments()?;
    let app = Router::new().fallback_service(ServeDir::new(&settings.folder));
    peers::runtime(&settings)?.block_on(async {
        let listener = peers::listener(settings.listen)?.tap_io(|stream| {
            // A socket that refuses is closing already.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await
    })
}
