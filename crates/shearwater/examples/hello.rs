//! The smallest server: one route, else a 404. `cargo run --release --example hello`, then `curl http://127.0.0.1:8080/plaintext`.
use shearwater::{App, Request, Response, Server};

fn main() -> Result<(), shearwater::Error> {
    let mut app = App::new();
    app.get("/plaintext", |_: &Request, response: &mut Response| {
        response.text("Hello, World!");
    });
    Server::new("127.0.0.1:8080").run_app(app)
}
