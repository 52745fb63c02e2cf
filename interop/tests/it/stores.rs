//! Applications with shared state: a to-do list in memory, accounts in a database.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

use crate::serve::{Json as _, Served, serve, serve_made};

#[derive(Clone, Serialize)]
struct Todo {
    id: u64,
    text: String,
    done: bool,
}

#[derive(Default)]
struct List {
    last_id: u64,
    todos: BTreeMap<u64, Todo>,
}

type Shared = Arc<RwLock<List>>;

#[derive(Deserialize)]
struct New {
    text: String,
}

#[derive(Deserialize)]
struct Change {
    text: Option<String>,
    done: Option<bool>,
}

#[derive(Deserialize)]
struct Page {
    offset: Option<usize>,
    limit: Option<usize>,
}

async fn index(State(list): State<Shared>, Query(page): Query<Page>) -> Json<Vec<Todo>> {
    let list = list.read().unwrap();
    let todos = list.todos.values().skip(page.offset.unwrap_or(0)).take(page.limit.unwrap_or(usize::MAX));
    Json(todos.cloned().collect())
}

async fn create(State(list): State<Shared>, Json(new): Json<New>) -> impl IntoResponse {
    let mut list = list.write().unwrap();
    list.last_id += 1;
    let todo = Todo { id: list.last_id, text: new.text, done: false };
    list.todos.insert(todo.id, todo.clone());
    (StatusCode::CREATED, [(header::LOCATION, format!("/todos/{}", todo.id))], Json(todo))
}

async fn show(State(list): State<Shared>, Path(id): Path<u64>) -> Result<Json<Todo>, StatusCode> {
    list.read().unwrap().todos.get(&id).cloned().map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn change(
    State(list): State<Shared>,
    Path(id): Path<u64>,
    Json(change): Json<Change>,
) -> Result<Json<Todo>, StatusCode> {
    let mut list = list.write().unwrap();
    let todo = list.todos.get_mut(&id).ok_or(StatusCode::NOT_FOUND)?;
    todo.text = change.text.unwrap_or_else(|| todo.text.clone());
    todo.done = change.done.unwrap_or(todo.done);
    Ok(Json(todo.clone()))
}

async fn remove(State(list): State<Shared>, Path(id): Path<u64>) -> StatusCode {
    match list.write().unwrap().todos.remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}

fn todo_app() -> Router {
    Router::new()
        .route("/todos", get(index).post(create))
        .route("/todos/{id}", get(show).patch(change).delete(remove))
        .with_state(Shared::default())
}

#[test]
fn creates_reads_changes_and_removes_todos() {
    let server = serve(todo_app());
    assert_eq!(server.get("/todos").json(), json!([]));

    let made = server.ask_json("POST", "/todos", &json!({ "text": "buy sails" }));
    assert_eq!(made.status, 201);
    assert_eq!(made.field("location"), Some("/todos/1"));
    assert_eq!(made.json(), json!({ "id": 1, "text": "buy sails", "done": false }));

    let changed = server.ask_json("PATCH", "/todos/1", &json!({ "done": true }));
    assert_eq!(changed.json(), json!({ "id": 1, "text": "buy sails", "done": true }));
    assert_eq!(server.get("/todos/1").json(), changed.json());

    let removed = server.ask("DELETE", "/todos/1", &[], b"");
    assert_eq!((removed.status, removed.content_length()), (204, None), "204 has no length");
    assert_eq!(server.ask("DELETE", "/todos/1", &[], b"").status, 404);
}

#[test]
fn returns_pages_by_query() {
    let server = serve(todo_app());
    for number in 1..=5 {
        server.ask_json("POST", "/todos", &json!({ "text": format!("no. {number}") }));
    }
    let page = server.get("/todos?offset=1&limit=2").json();
    let ids: Vec<_> = page.as_array().unwrap().iter().map(|todo| todo["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn rejects_invalid_todos() {
    let server = serve(todo_app());
    assert_eq!(server.ask_json("POST", "/todos", &json!({ "done": true })).status, 422);
    let json = ["Content-Type: application/json"];
    assert_eq!(server.ask("POST", "/todos", &json, b"{ no json").status, 400);
    assert_eq!(server.ask("POST", "/todos", &["Content-Type: text/plain"], b"{}").status, 415);
    assert_eq!(server.get("/todos/first").status, 400);
    assert_eq!(server.get("/todos?limit=many").status, 400);
    assert_eq!(server.get("/todos").json(), json!([]), "nothing was kept of them");
}

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
async fn account_app() -> Router {
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
    server.get(&format!("/account/{owner}")).json()["amount"].as_i64().unwrap()
}

#[test]
fn returns_rows() {
    let server = serve_made(account_app());
    assert_eq!(server.get("/account/ada").json(), json!({ "owner": "ada", "amount": 200 }));
    assert_eq!(server.get("/account/nobody").status, 404);
    assert_eq!(server.get("/account/x'%20OR%20'1'='1").status, 404);
}

#[test]
fn commits_transactions_whole_or_not_at_all() {
    let server = serve_made(account_app());
    assert_eq!(server.ask("POST", "/transfer/ada/ben/50", &[], b"").status, 204);
    assert_eq!(server.ask("POST", "/transfer/ada/ben/151", &[], b"").status, 409);
    assert_eq!((amount(&server, "ada"), amount(&server, "ben")), (150, 50));
}

/// More requests than connections: they queue for the pool, and all succeed.
#[test]
fn shares_the_pool_between_requests() {
    let server = serve_made(account_app());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..TRANSFERS {
                    assert_eq!(client.request("POST", "/transfer/ada/ben/1", &[]).status, 204);
                }
            });
        }
    });
    assert_eq!((amount(&server, "ada"), amount(&server, "ben")), (0, 200));
}
