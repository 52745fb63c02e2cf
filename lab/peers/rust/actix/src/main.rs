//! actix-web with one worker: `GET /plaintext` and `GET /json`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use actix_web::http::header::SERVER;
use actix_web::{App, HttpResponse, HttpServer, Route, web};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn constant(kind: &'static str, body: &'static str) -> Route {
    web::get().to(move || async move {
        HttpResponse::Ok().insert_header((SERVER, "actix")).content_type(kind).body(body)
    })
}

fn main() -> io::Result<()> {
    let address =
        std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: peer-actix ADDRESS:PORT"))?;
    let plaintext = || constant("text/plain", "Hello, World!");
    let json = || constant("application/json", r#"{"message":"Hello, World!"}"#);
    let app = move || App::new().route("/plaintext", plaintext()).route("/json", json());
    let server = HttpServer::new(app).workers(1).backlog(16_384).keep_alive(Duration::from_secs(300));
    actix_web::rt::System::new().block_on(server.bind(address)?.run())
}
