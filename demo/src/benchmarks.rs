//! Routes of public benchmarks: TechEmpower's database tests by its rules, and the sums of HttpArena's baseline.

use std::fmt::Write;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use serde::{Deserialize, Serialize};

use crate::app::Refusal;
use crate::database::{Database, Error, Fortune, World};

/// Maximum number of rows that a request may ask for; more are clamped to it.
const ROWS_MAX: u32 = 500;
/// The row that each request adds to the fortunes of the database.
const ADDED: &str = "Additional fortune added at request time.";

/// A row of the table `world` as JSON.
#[derive(Serialize)]
pub(crate) struct Row {
    id: u32,
    #[serde(rename = "randomNumber")]
    random_number: u32,
}

impl From<World> for Row {
    fn from(world: World) -> Self {
        Self { id: world.id, random_number: world.number }
    }
}

/// Number of rows, as text, because anything that is not a number counts as 1.
#[derive(Deserialize)]
pub(crate) struct Count {
    queries: Option<String>,
}

impl Count {
    fn rows(&self) -> u32 {
        let number = self.queries.as_deref().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
        number.clamp(1, ROWS_MAX.into()) as u32
    }
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Busy => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, format!("the database failed: {error}\n")),
    }
}

pub(crate) async fn random_row(State(database): State<Database>) -> Result<Json<Row>, Refusal> {
    database.random_row().await.map(|world| Json(world.into())).map_err(|error| refusal(&error))
}

pub(crate) async fn random_rows(
    State(database): State<Database>,
    Query(count): Query<Count>,
) -> Result<Json<Vec<Row>>, Refusal> {
    let rows = database.random_rows(count.rows()).await.map_err(|error| refusal(&error))?;
    Ok(Json(rows.into_iter().map(Row::from).collect()))
}

/// Gives random rows new numbers and returns them.
pub(crate) async fn update_rows(
    State(database): State<Database>,
    Query(count): Query<Count>,
) -> Result<Json<Vec<Row>>, Refusal> {
    let rows = database.update_rows(count.rows()).await.map_err(|error| refusal(&error))?;
    Ok(Json(rows.into_iter().map(Row::from).collect()))
}

pub(crate) async fn fortunes(State(database): State<Database>) -> Result<Html<String>, Refusal> {
    let mut fortunes = database.fortunes().await.map_err(|error| refusal(&error))?;
    fortunes.push(Fortune { id: 0, message: ADDED.to_owned() });
    fortunes.sort_by(|one, other| one.message.cmp(&other.message));
    let mut page = String::from(
        "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>\
         <tr><th>id</th><th>message</th></tr>",
    );
    for Fortune { id, message } in fortunes {
        // A String takes all that is written to it.
        let _ = write!(page, "<tr><td>{id}</td><td>{}</td></tr>", escape(&message));
    }
    Ok(Html(page + "</table></body></html>"))
}

/// Escapes the characters that end a text in HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Numbers in the query of a sum.
#[derive(Deserialize)]
pub(crate) struct Sum {
    a: i64,
    b: i64,
}

/// Returns the sum of the query's two numbers and, of a POST, the number in the body.
pub(crate) async fn add(Query(Sum { a, b }): Query<Sum>, body: String) -> Result<String, Refusal> {
    let body = if body.is_empty() { Ok(0) } else { body.trim().parse::<i64>() };
    let added =
        body.map_err(|error| (StatusCode::BAD_REQUEST, format!("the body is no number: {error}\n")))?;
    Ok(a.wrapping_add(b).wrapping_add(added).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_the_number_of_rows() {
        let rows = |text: Option<&str>| Count { queries: text.map(str::to_owned) }.rows();
        let cases = [None, Some(""), Some("foo"), Some("0"), Some("2"), Some("501"), Some("99999999999")];
        assert_eq!(cases.map(rows), [1, 1, 1, 1, 2, 500, 500]);
    }
}
