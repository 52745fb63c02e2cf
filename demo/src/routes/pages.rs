//! `/`, `/welcome`, `/json`, `/plaintext`, `/user/{id}`: immediate responses.

use axum::Json;
use axum::extract::Path;
use axum::response::Html;
use serde::Serialize;

/// A greeting as JSON.
#[derive(Serialize)]
pub(crate) struct Message {
    message: &'static str,
}

pub(crate) async fn hello() -> &'static str {
    "Hello, world"
}

pub(crate) async fn welcome() -> Html<&'static str> {
    Html(include_str!("welcome.html"))
}

pub(crate) async fn json() -> Json<Message> {
    Json(Message { message: "Hello, World!" })
}

pub(crate) async fn plaintext() -> &'static str {
    "Hello, World!"
}

/// Returns the path parameter, decoded.
pub(crate) async fn user(Path(id): Path<String>) -> String {
    id
}
