//! A to-do list: JSON in and out, shared state, path parameters.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{ask, ask_json, get as ask_get};
use crate::serve::serve;

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

fn app() -> Router {
    Router::new()
        .route("/todos", get(index).post(create))
        .route("/todos/{id}", get(show).patch(change).delete(remove))
        .with_state(Shared::default())
}

#[test]
fn a_todo_is_made_read_changed_and_removed() {
    let server = serve(app());
    assert_eq!(ask_get(server.addr, "/todos").json(), json!([]));

    let made = ask_json(server.addr, "POST", "/todos", &json!({ "text": "buy sails" }));
    assert_eq!(made.status(), 201);
    assert_eq!(made.head.field("location"), Some("/todos/1"));
    assert_eq!(made.json(), json!({ "id": 1, "text": "buy sails", "done": false }));

    let changed = ask_json(server.addr, "PATCH", "/todos/1", &json!({ "done": true }));
    assert_eq!(changed.json(), json!({ "id": 1, "text": "buy sails", "done": true }));
    assert_eq!(ask_get(server.addr, "/todos/1").json(), changed.json());

    let removed = ask(server.addr, "DELETE", "/todos/1", &[], b"");
    assert_eq!((removed.status(), removed.head.content_length()), (204, None), "204 has no length");
    assert_eq!(ask(server.addr, "DELETE", "/todos/1", &[], b"").status(), 404);
}

#[test]
fn pages_follow_the_query() {
    let server = serve(app());
    for number in 1..=5 {
        ask_json(server.addr, "POST", "/todos", &json!({ "text": format!("no. {number}") }));
    }
    let page = ask_get(server.addr, "/todos?offset=1&limit=2").json();
    let ids: Vec<_> = page.as_array().unwrap().iter().map(|todo| todo["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn what_is_no_todo_is_refused_by_the_extractor() {
    let server = serve(app());
    assert_eq!(ask_json(server.addr, "POST", "/todos", &json!({ "done": true })).status(), 422);
    let json = ["Content-Type: application/json"];
    assert_eq!(ask(server.addr, "POST", "/todos", &json, b"{ no json").status(), 400);
    assert_eq!(ask(server.addr, "POST", "/todos", &["Content-Type: text/plain"], b"{}").status(), 415);
    assert_eq!(ask_get(server.addr, "/todos/first").status(), 400);
    assert_eq!(ask_get(server.addr, "/todos?limit=many").status(), 400);
    assert_eq!(ask_get(server.addr, "/todos").json(), json!([]), "nothing was kept of them");
}
