//! ntex with one worker: `GET /plaintext` and `GET /json`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;

use ntex::http::header::SERVER;
use ntex::web::{self, App, HttpResponse, HttpServer, Route};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn constant(kind: &'static str, body: &'static str) -> Route {
    web::get().to(async move || HttpResponse::Ok().header(SERVER, "ntex").content_type(kind).body(body))
}

#[ntex::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: peer-ntex ADDRESS:PORT"))?;
    let plaintext = || constant("text/plain", "Hello, World!");
    let json = || constant("application/json", r#"{"message":"Hello, World!"}"#);
    let app = async move || App::new().route("/plaintext", plaintext()).route("/json", json());
    HttpServer::new(app).workers(1).backlog(16_384).bind(address)?.run().await
}
