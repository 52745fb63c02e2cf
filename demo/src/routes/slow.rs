//! `/slow-async?ms=`: an answer that takes its time, while the thread serves others.

use std::time::Duration;

use axum::extract::Query;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::app::Refusal;

/// How long a request may ask to wait.
pub(crate) const WAIT_MS_MAX: u64 = 60_000;

/// How long to wait.
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
