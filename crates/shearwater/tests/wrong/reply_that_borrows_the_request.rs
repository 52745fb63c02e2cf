//! A reply that borrows the request.

use shearwater::{App, Request, get};

fn main() {
    let _ = App::new().route("/", get(|request: &Request| request.path()));
}
