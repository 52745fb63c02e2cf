//! Handlers: pages, a database row, bodies of any length, events, a deferred response.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Body;
use axum::extract::multipart::MultipartError;
use axum::extract::{Multipart, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse, Sse};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::app::Refusal;
use crate::serve::{Stop, Watch};

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

/// Maximum number of parts in a form, because the response lists them.
const PARTS_MAX: usize = 100;
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A part of a form in the response.
#[derive(Serialize)]
pub(crate) struct Part {
    name: Option<String>,
    file: Option<String>,
    #[serde(rename = "type")]
    media_type: Option<String>,
    bytes: u64,
}

/// Echoes the body with its type as it arrives.
pub(crate) async fn echo(headers: HeaderMap, body: Body) -> impl IntoResponse {
    let media_type = headers.get(header::CONTENT_TYPE).cloned().unwrap_or(OCTETS);
    ([(header::CONTENT_TYPE, media_type)], body)
}

/// Lists the names and lengths of a form's parts.
pub(crate) async fn upload(mut form: Multipart) -> Result<Json<Vec<Part>>, Refusal> {
    let refused = |error: MultipartError| (error.status(), format!("{}\n", error.body_text()));
    let mut parts = Vec::new();
    while let Some(mut field) = form.next_field().await.map_err(refused)? {
        if parts.len() == PARTS_MAX {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, format!("more than {PARTS_MAX} parts\n")));
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (name, file, media_type) =
            (owned(field.name()), owned(field.file_name()), owned(field.content_type()));
        let mut bytes = 0;
        while let Some(piece) = field.chunk().await.map_err(refused)? {
            bytes += piece.len() as u64;
        }
        parts.push(Part { name, file, media_type, bytes });
    }
    Ok(Json(parts))
}

const EVERY_MS: u64 = 1000;
const EVERY_MS_MIN: u64 = 10;
const EVERY_MS_MAX: u64 = 60_000;

/// The interval.
#[derive(Deserialize)]
pub(crate) struct Pace {
    every_ms: Option<u64>,
}

pub(crate) async fn subscribe(
    State(stop): State<Stop>,
    Query(pace): Query<Pace>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let every_ms = pace.every_ms.unwrap_or(EVERY_MS);
    if !(EVERY_MS_MIN..=EVERY_MS_MAX).contains(&every_ms) {
        let why = format!("every_ms should be from {EVERY_MS_MIN} to {EVERY_MS_MAX}\n");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let mut pace = interval(Duration::from_millis(every_ms));
    // A slow client gets no burst of missed ticks.
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    Ok(Sse::new(stream::unfold((pace, stop.watch(), 0), next)))
}

/// Ends with the server; the stream has no end of its own.
async fn next(state: (Interval, Watch, u64)) -> Option<(Result<Event, Infallible>, (Interval, Watch, u64))> {
    let (mut pace, mut stop, number) = state;
    tokio::select! {
        _ = pace.tick() => {}
        () = stop.requested() => return None,
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let event = Event::default().event("tick").id(number.to_string());
    let event = event.data(format!(r#"{{"tick":{number},"unix_seconds":{seconds}}}"#));
    Some((Ok(event), (pace, stop, number + 1)))
}

/// Maximum wait in milliseconds.
pub(crate) const WAIT_MS_MAX: u64 = 60_000;

/// Wait in milliseconds.
#[derive(Deserialize)]
pub(crate) struct Wait {
    ms: u64,
}

pub(crate) async fn sleep(Query(Wait { ms }): Query<Wait>) -> Result<String, Refusal> {
    if ms > WAIT_MS_MAX {
        return Err((StatusCode::BAD_REQUEST, format!("ms should be {WAIT_MS_MAX} at most\n")));
    }
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(format!("slept {ms} ms\n"))
}
