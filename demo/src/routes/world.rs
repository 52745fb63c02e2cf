//! `/db`: a random row of the database.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

use crate::app::Refusal;
use crate::database::{Database, Error};

/// A row as JSON.
#[derive(Serialize)]
pub(crate) struct Row {
    id: u32,
    #[serde(rename = "randomNumber")]
    random_number: u32,
}

pub(crate) async fn random(State(database): State<Database>) -> Result<Json<Row>, Refusal> {
    match database.random_row().await {
        Ok(world) => Ok(Json(Row { id: world.id, random_number: world.number })),
        Err(busy @ Error::Busy) => Err((StatusCode::SERVICE_UNAVAILABLE, format!("{busy}\n"))),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("the database failed: {error}\n"))),
    }
}
