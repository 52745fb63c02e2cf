//! may_minihttp with one worker: `GET /plaintext` and `GET /json`, and 404 for everything else.

#![forbid(unsafe_code)]

use std::io;

use may_minihttp::{HttpServer, HttpService, Request, Response};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone)]
struct Constants;

impl HttpService for Constants {
    fn call(&mut self, request: Request<'_, '_, '_>, response: &mut Response<'_>) -> io::Result<()> {
        let (kind, body) = match request.path() {
            "/plaintext" => ("Content-Type: text/plain", "Hello, World!"),
            "/json" => ("Content-Type: application/json", r#"{"message":"Hello, World!"}"#),
            _ => {
                response.status_code(404, "Not Found");
                return Ok(());
            }
        };
        response.header(kind).body(body);
        Ok(())
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: peer-may ADDRESS:PORT"))?;
    may::config().set_workers(1);
    HttpServer(Constants).start(address)?.wait();
    Ok(())
}
