//! A reply of a type that is none.

use shearwater::{App, Request, get};

fn main() {
    let _ = App::new().route("/", get(|_: &Request| 5_u8));
}
