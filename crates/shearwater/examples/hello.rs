//! The smallest server: one closure. `cargo run --release --example hello`, then `curl http://127.0.0.1:8080/`.
use shearwater::{Request, Response, Server};

fn main() -> Result<(), shearwater::Error> {
    Server::new("127.0.0.1:8080").run(|_request: &Request, response: &mut Response| {
        response.text("Hello, world\n");
    })
}
