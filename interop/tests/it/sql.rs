//! A pool of database connections: opened before the server starts, shared by all handlers, with transactions.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

use crate::client::{ask, get as ask_get};
use crate::serve::{Served, serve_made};

const CLIENTS: usize = 8;
const TRANSFERS: usize = 25;

/// A database error as a response.
struct Failed(sqlx::Error);

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self(error)
    }
}

impl axum::response::IntoResponse for Failed {
    fn into_response(self) -> axum::response::Response {
        let status = match self.0 {
            sqlx::Error::RowNotFound => StatusCode::NOT_FOUND,
            sqlx::Error::Database(error) if error.is_check_violation() => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        status.into_response()
    }
}

async fn balance(State(pool): State<SqlitePool>, Path(owner): Path<String>) -> Result<Json<Value>, Failed> {
    let query = sqlx::query("SELECT amount FROM account WHERE owner = ?").bind(&owner);
    let amount: i64 = query.fetch_one(&pool).await?.try_get("amount")?;
    Ok(Json(json!({ "owner": owner, "amount": amount })))
}

/// A transaction whose second statement fails if the balance is too low.
async fn transfer(
    State(pool): State<SqlitePool>,
    Path((from, to, amount)): Path<(String, String, i64)>,
) -> Result<StatusCode, Failed> {
    let mut transaction = pool.begin().await?;
    let change = "UPDATE account SET amount = amount + ? WHERE owner = ?";
    sqlx::query(change).bind(amount).bind(to).execute(&mut *transaction).await?;
    sqlx::query(change).bind(-amount).bind(from).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One connection, because a second one would be another in-memory database.
async fn app() -> Router {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    let table = "CREATE TABLE account (owner TEXT PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount >= 0))";
    sqlx::query(table).execute(&pool).await.unwrap();
    sqlx::query("INSERT INTO account VALUES ('ada', 200), ('ben', 0)").execute(&pool).await.unwrap();
    Router::new()
        .route("/account/{owner}", get(balance))
        .route("/transfer/{from}/{to}/{amount}", post(transfer))
        .with_state(pool)
}

fn amount(server: &Served, owner: &str) -> i64 {
    ask_get(server.addr, &format!("/account/{owner}")).json()["amount"].as_i64().unwrap()
}

#[test]
fn rows_become_responses() {
    let server = serve_made(app());
    assert_eq!(ask_get(server.addr, "/account/ada").json(), json!({ "owner": "ada", "amount": 200 }));
    assert_eq!(ask_get(server.addr, "/account/nobody").status(), 404);
    assert_eq!(ask_get(server.addr, "/account/x'%20OR%20'1'='1").status(), 404);
}

#[test]
fn a_transaction_is_whole_or_not_at_all() {
    let server = serve_made(app());
    assert_eq!(ask(server.addr, "POST", "/transfer/ada/ben/50", &[], b"").status(), 204);
    assert_eq!(ask(server.addr, "POST", "/transfer/ada/ben/151", &[], b"").status(), 409);
    assert_eq!((amount(&server, "ada"), amount(&server, "ben")), (150, 50));
}

/// More requests than connections: they queue for the pool, and all succeed.
#[test]
fn many_share_the_pool() {
    let server = serve_made(app());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = crate::client::Client::connect(server.addr);
                for _ in 0..TRANSFERS {
                    assert_eq!(client.ask("POST", "/transfer/ada/ben/1", &[], b"").status(), 204);
                }
            });
        }
    });
    assert_eq!((amount(&server, "ada"), amount(&server, "ben")), (0, 200));
}
