//! A small API: routes with parameters, fast routes, a guard, state.
//! `cargo run --release --example routes`, then `curl http://127.0.0.1:8080/version` or
//! `curl -H 'X-Key: secret' http://127.0.0.1:8080/api/hello/you`.
use std::cell::Cell;
use std::ops::ControlFlow;

use shearwater::{App, Cors, Fast, Request, Response, Server};

/// Number of requests that a worker has greeted.
#[derive(Default)]
struct Greeted(Cell<u64>);

fn main() -> Result<(), shearwater::Error> {
    let mut app = App::new();
    app.fast("/version", Fast::json(r#"{"version":1}"#).cache_control("max-age=60").cors(Cors::any()));
    app.local(|_worker| Greeted::default());
    app.after(|_: &Request, response: &mut Response| {
        response.field("X-Content-Type-Options", "nosniff");
    });
    app.scope("/api", |api| {
        api.before(guard);
        api.get("/hello/{name}", greet);
    });
    Server::new("127.0.0.1:8080").run_app(app)
}

/// Rejects requests without the key.
fn guard(request: &Request, response: &mut Response) -> ControlFlow<()> {
    if request.head().field_named("X-Key") == Some(b"secret") {
        return ControlFlow::Continue(());
    }
    response.status(401).text("A key is needed.\n");
    ControlFlow::Break(())
}

fn greet(request: &Request, response: &mut Response) {
    let Some(name) = request.param_decoded("name") else {
        response.status(400).text("This name is not percent-encoded UTF-8.\n");
        return;
    };
    let Greeted(count) = request.local();
    count.set(count.get() + 1);
    response.text(&format!("Hello, {name}! This worker has greeted {}.\n", count.get()));
}
