//! A handler of another state.

use shearwater::{App, Request, get};

struct State;

fn hello(_: &Request<State>) -> &'static str {
    "hello"
}

fn main() {
    let _ = App::new().route("/", get(hello));
}
