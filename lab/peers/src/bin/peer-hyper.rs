//! hyper 1 without a framework: one constant response, HTTP/1.1 with keep-alive and batched responses to pipelined requests.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, SERVER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

fn main() -> io::Result<()> {
    let settings = peers::PeerSettings::from_arguments()?;
    settings.runtime()?.block_on(async {
        let listener = settings.listener()?;
        loop {
            // A failed accept concerns one connection only.
            let Ok((stream, _)) = listener.accept().await else { continue };
            tokio::spawn(converse(stream));
        }
    })
}

async fn converse(stream: TcpStream) {
    // Nagle would delay responses; a socket that refuses is closing already.
    let _ = stream.set_nodelay(true);
    let served = http1::Builder::new()
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    // An error ends its connection only.
    let _ = served.await;
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let found = request.uri().path() == "/plaintext";
    let body = if found { Bytes::from_static(peers::PLAINTEXT.as_bytes()) } else { Bytes::new() };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = if found { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(SERVER, HeaderValue::from_static("hyper"));
    Ok(response)
}
