//! A handler without the body that `buffered` passes.

use shearwater::{App, Request, buffered, post};

fn main() {
    let _ = App::new().route("/", post(buffered(10, |_: &Request| "no body")));
}
