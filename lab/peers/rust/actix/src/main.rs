//! actix-web with one worker: `GET /plaintext` and `GET /json`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use actix_web::http::header::{ContentType, SERVER};
use actix_web::{App, HttpResponse, HttpServer, web};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

async fn plaintext() -> HttpResponse {
    let head = ContentType::plaintext();
    HttpResponse::Ok().insert_header((SERVER, "actix")).content_type(head).body("Hello, World!")
}

async fn json() -> HttpResponse {
    let body = r#"{"message":"Hello, World!"}"#;
    HttpResponse::Ok().insert_header((SERVER, "actix")).content_type(ContentType::json()).body(body)
}

fn main() -> io::Result<()> {
    let address =
        std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: peer-actix ADDRESS:PORT"))?;
    let app = || App::new().route("/plaintext", web::get().to(plaintext)).route("/json", web::get().to(json));
    let server = HttpServer::new(app).workers(1).backlog(16_384).keep_alive(Duration::from_secs(300));
    actix_web::rt::System::new().block_on(server.bind(address)?.run())
}
