//! The routes that are answered in front of the application where `SERVER_MODE` is `performance`.

use axum::Router;
use axum::http::header;
use axum::routing::get;

const JSON: &[u8] = br#"{"message":"Hello, World!"}"#;
const PLAINTEXT: &[u8] = b"Hello, World!";

/// Prebuilt answers to `GET`; all else falls through to the application.
pub(crate) fn in_front_of(app: Router) -> Router {
    let json = get(async || ([(header::CONTENT_TYPE, "application/json")], JSON));
    let plaintext = get(async || ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], PLAINTEXT));
    Router::new()
        .route("/json", json.fallback_service(app.clone()))
        .route("/plaintext", plaintext.fallback_service(app.clone()))
        .fallback_service(app)
}
