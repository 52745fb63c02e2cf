//! A coroutine that reads a body that it does not get.

use shearwater::{App, Line, line, post};

fn read(line: &mut Line) {
    while line.read().is_some() {}
}

fn main() {
    let _ = App::new().route("/", post(line(read)));
}
