//! The application: an ordinary axum router with its state and its middleware.

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};

use crate::chat::Room;
use crate::database::Database;
use crate::serve::Stop;
use crate::sign_in::Keys;
use crate::{benchmarks, chat, routes, sign_in};

/// State shared by handlers; cheap to clone.
#[derive(Clone)]
pub(crate) struct State {
    database: Database,
    keys: Keys,
    room: Room,
    stop: Stop,
}

/// An error response: a status and one sentence.
pub(crate) type Refusal = (StatusCode, String);

impl State {
    pub(crate) fn new(database: Database, keys: Keys) -> Self {
        Self { database, keys, room: Room::default(), stop: Stop::default() }
    }

    /// Signals the end of the server to streams that never end by themselves.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }
}

impl FromRef<State> for Database {
    fn from_ref(state: &State) -> Self {
        state.database.clone()
    }
}

impl FromRef<State> for Keys {
    fn from_ref(state: &State) -> Self {
        state.keys.clone()
    }
}

impl FromRef<State> for Room {
    fn from_ref(state: &State) -> Self {
        state.room.clone()
    }
}

impl FromRef<State> for Stop {
    fn from_ref(state: &State) -> Self {
        state.stop.clone()
    }
}

/// Creates the router, with those routes too that `serve.rs` may put in front of it.
pub(crate) fn router(state: State) -> Router {
    Router::new()
        .route("/", get(routes::hello).post(routes::echo))
        .route("/welcome", get(routes::welcome))
        .route("/json", get(routes::json))
        .route("/plaintext", get(routes::plaintext))
        .route("/user/{id}", get(routes::user))
        .route("/db", get(benchmarks::random_row))
        .route("/queries", get(benchmarks::random_rows))
        .route("/updates", get(benchmarks::update_rows))
        .route("/fortunes", get(benchmarks::fortunes))
        .route("/baseline11", get(benchmarks::add).post(benchmarks::add))
        .route("/login", post(sign_in::login))
        .route("/me", get(sign_in::me))
        .route("/events", get(routes::subscribe))
        .route("/ws", any(chat::join))
        .route("/upload", post(routes::upload))
        .route("/slow-async", get(routes::sleep))
        .fallback(missing)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(no_sniffing))
        .with_state(state)
}

async fn missing(uri: Uri) -> Refusal {
    (StatusCode::NOT_FOUND, format!("there is nothing at {}; /welcome lists what there is\n", uri.path()))
}

/// Adds `X-Content-Type-Options: nosniff` to each response.
async fn no_sniffing(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
