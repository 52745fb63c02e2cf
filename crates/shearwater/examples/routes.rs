//! A small API: parameters, constants, CORS, middleware, state.
//! `cargo run --release --example routes`, then `curl http://127.0.0.1:8080/version` or
//! `curl -H 'X-Key: secret' http://127.0.0.1:8080/api/hello/you`.
use std::cell::Cell;
use std::ops::ControlFlow;

use shearwater::{App, Cors, Failure, Fast, Middleware, Request, Response, Server, get};

/// The state of a worker.
#[derive(Default)]
struct State {
    greeted: Cell<u64>,
}

fn main() -> Result<(), shearwater::Error> {
    let version = Fast::json(r#"{"version":1}"#).cache_control("max-age=60");
    let app = App::with_state(|_worker| State::default())
        .route("/version", get(version).cors(Cors::any()))
        .scope("/api", |api| api.with(Key("secret")).route("/hello/{name}", get(greet)));
    Server::bind("127.0.0.1:8080").run(app)
}

/// Rejects requests without the key.
struct Key(&'static str);

impl<S> Middleware<S> for Key {
    fn head(&self, request: &Request<S>, response: &mut Response) -> ControlFlow<()> {
        if request.header("X-Key") == Some(self.0) {
            return ControlFlow::Continue(());
        }
        response.status(401).text("A key is needed.\n");
        ControlFlow::Break(())
    }

    fn response(&self, _: &Request<S>, response: &mut Response) {
        response.field("X-Content-Type-Options", "nosniff");
    }
}

fn greet(request: &Request<State>) -> Result<String, Failure> {
    let name: String = request.param("name")?;
    let greeted = &request.state().greeted;
    greeted.set(greeted.get() + 1);
    Ok(format!("Hello, {name}! This worker has greeted {}.\n", greeted.get()))
}
