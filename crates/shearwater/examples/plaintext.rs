//! Small constant responses for `cargo lab`: `GET /plaintext`, `/json` and `/item/00` to `/item/63`; everything else is
//! a 404.
//!
//! Environment: `SHEARWATER_LISTEN` (127.0.0.1:8080), `SHEARWATER_WORKERS` (0: one per core), `SHEARWATER_DRIVER`
//! (auto, epoll, uring, kqueue).

use shearwater::{App, DriverChoice, Request, Response, Server, get};

/// Adds paths with the same text.
const ITEMS: u32 = 64;

fn main() -> Result<(), shearwater::Error> {
    let setting = |name: &str| std::env::var(name).ok();
    let listen = setting("SHEARWATER_LISTEN").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let workers = setting("SHEARWATER_WORKERS").and_then(|workers| workers.parse().ok()).unwrap_or(0);
    let driver = match setting("SHEARWATER_DRIVER").as_deref() {
        Some("epoll") => DriverChoice::Epoll,
        Some("uring") => DriverChoice::Uring,
        Some("kqueue") => DriverChoice::Kqueue,
        Some(_) | None => DriverChoice::Auto,
    };
    Server::bind(listen).workers(workers).driver(driver).run(app())
}

fn app() -> App {
    let mut app = App::new().route("/plaintext", get(greet));
    for item in 0..ITEMS {
        app = app.route(&format!("/item/{item:02}"), get(greet));
    }
    app.route(
        "/json",
        get(|_: &Request, response: &mut Response| {
            response.content_type("application/json").body(br#"{"message":"Hello, World!"}"#);
        }),
    )
}

fn greet(_: &Request, response: &mut Response) {
    response.text("Hello, World!");
}
