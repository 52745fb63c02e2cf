//! Applications with shared state: accounts in a database, a lock held across awaits.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use tokio::sync::Mutex;

use crate::serve::{Json as _, Served, serve, serve_made};

const CLIENTS: usize = 8;
const REQUESTS: usize = 25;

/// A database error as a response.
struct Failed(sqlx::Error);

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
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
async fn account_app() -> Router {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    let table = "CREATE TABLE account (owner TEXT PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount >= 0))";
    sqlx::query(table).execute(&pool).await.unwrap();
    sqlx::query("INSERT INTO account VALUES ('ada', 250), ('ben', 0)").execute(&pool).await.unwrap();
    Router::new()
        .route("/account/{owner}", get(balance))
        .route("/transfer/{from}/{to}/{amount}", post(transfer))
        .with_state(pool)
}

/// Sends requests from several clients at once, and expects this status.
fn ask_at_once(server: &Served, method: &str, target: &str, status: u16) {
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..REQUESTS {
                    assert_eq!(client.request(method, target, &[]).status, status);
                }
            });
        }
    });
}

/// More requests than connections of the pool: they queue for it, and all succeed.
#[test]
fn commits_transactions_whole_or_not_at_all() {
    for server in serve_made(account_app) {
        let amount =
            |owner: &str| server.get(&format!("/account/{owner}")).json()["amount"].as_i64().unwrap();
        assert_eq!(server.get("/account/nobody").status, 404);
        assert_eq!(server.ask("POST", "/transfer/ada/ben/50", &[], b"").status, 204);
        assert_eq!(server.ask("POST", "/transfer/ada/ben/201", &[], b"").status, 409);
        assert_eq!((amount("ada"), amount("ben")), (200, 50));
        ask_at_once(&server, "POST", "/transfer/ada/ben/1", 204);
        assert_eq!((amount("ada"), amount("ben")), (0, 250));
    }
}

/// The next waiter for the lock is woken from another task.
#[test]
fn passes_on_a_lock_held_across_awaits() {
    let number = async |State(last): State<Arc<Mutex<usize>>>| {
        let mut last = last.lock().await;
        let read = *last;
        tokio::task::yield_now().await;
        *last = read + 1;
        last.to_string()
    };
    for server in serve(|| Router::new().route("/", get(number)).with_state(Arc::default())) {
        ask_at_once(&server, "GET", "/", 200);
        assert_eq!(server.get("/").text(), (CLIENTS * REQUESTS + 1).to_string());
    }
}
