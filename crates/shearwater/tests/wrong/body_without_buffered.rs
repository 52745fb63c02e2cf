//! A handler with a body, without `buffered`.

use shearwater::{App, Request, post};

fn echo(_: &Request, body: &[u8]) -> Vec<u8> {
    body.to_vec()
}

fn main() {
    let _ = App::new().route("/", post(echo));
}
