//! A text as an error.

use shearwater::{App, Request, get};

fn main() {
    let _ = App::new().route("/", get(|_: &Request| Err::<(), _>("a text")));
}
