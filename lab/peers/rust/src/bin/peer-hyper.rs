//! hyper 1 without a framework: the routes of the peers, HTTP/1.1 with keep-alive and batched responses to pipelined requests.

#![forbid(unsafe_code)]

use std::io;

use http_body_util::{BodyExt, Full};
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

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (mut status, mut kind) = (StatusCode::OK, "text/plain; charset=utf-8");
    let body = match request.uri().path() {
        "/plaintext" => Bytes::from_static(peers::PLAINTEXT.as_bytes()),
        "/json" => {
            kind = "application/json";
            serde_json::to_vec(&peers::MESSAGE).unwrap_or_default().into()
        }
        "/body" => request.into_body().collect().await?.to_bytes(),
        "/timer" => {
            peers::wait().await;
            Bytes::from_static(peers::PLAINTEXT.as_bytes())
        }
        "/row" => peers::row().into(),
        _ => {
            status = StatusCode::NOT_FOUND;
            Bytes::new()
        }
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(SERVER, HeaderValue::from_static("hyper"));
    Ok(response)
}
