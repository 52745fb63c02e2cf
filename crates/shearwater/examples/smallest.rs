//! A server with one closure for all requests. `cargo run --release --example smallest [ADDRESS [epoll|uring]]`.
use shearwater::{App, DriverChoice, Request, Response, Server};

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let uring = std::env::args().nth(2).is_some_and(|driver| driver == "uring");
    let driver = if uring { DriverChoice::Uring } else { DriverChoice::Epoll };
    let app = App::new().fallback(|_: &Request, response: &mut Response| {
        response.text("Hello, World!");
    });
    Server::bind(listen).driver(driver).run(app)
}
