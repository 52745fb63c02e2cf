//! `/slow-async?ms=`: a deferred response.

use std::time::Duration;

use axum::extract::Query;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::app::Refusal;

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
