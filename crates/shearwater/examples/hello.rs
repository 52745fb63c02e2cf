//! The smallest server: one route, else a 404. `cargo run --release --example hello`, then `curl http://127.0.0.1:8080/plaintext`.
use shearwater::{App, Server, get};

fn main() -> Result<(), shearwater::Error> {
    Server::bind("127.0.0.1:8080").run(App::new().route("/plaintext", get("Hello, World!")))
}
