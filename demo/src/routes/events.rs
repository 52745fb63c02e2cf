//! `/events`: server-sent events, one each second or every `every_ms`.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Sse;
use axum::response::sse::Event;
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::app::Refusal;
use crate::serve::{Stop, Watch};

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
