//! ntex with one worker: `GET /plaintext` and `GET /json`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;

use ntex::http::header::SERVER;
use ntex::web::{self, App, HttpResponse, HttpServer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

async fn plaintext() -> HttpResponse {
    HttpResponse::Ok().header(SERVER, "ntex").content_type("text/plain").body("Hello, World!")
}

async fn json() -> HttpResponse {
    let body = r#"{"message":"Hello, World!"}"#;
    HttpResponse::Ok().header(SERVER, "ntex").content_type("application/json").body(body)
}

#[ntex::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: peer-ntex ADDRESS:PORT"))?;
    let app =
        async || App::new().route("/plaintext", web::get().to(plaintext)).route("/json", web::get().to(json));
    HttpServer::new(app).workers(1).backlog(16_384).bind(address)?.run().await
}
