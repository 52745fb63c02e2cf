//! Streamed bodies: uploads to a file and a counter, downloads from a file and a stream, an echo.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use crate::client::{Client, ask, get as ask_get};
use crate::folder::Folder;
use crate::serve::serve;

const FILE_BYTES: usize = 3 * 1024 * 1024 + 17;

type Target = Arc<PathBuf>;

async fn upload(State(path): State<Target>, body: Body) -> Result<String, StatusCode> {
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let mut file = tokio::fs::File::create(&*path).await.map_err(failed)?;
    let mut pieces = body.into_data_stream();
    let mut length = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| StatusCode::BAD_REQUEST)?;
        length += piece.len();
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(length.to_string())
}

async fn download(State(path): State<Target>) -> Result<impl IntoResponse, StatusCode> {
    let file = tokio::fs::File::open(&*path).await.map_err(|_| StatusCode::NOT_FOUND)?;
    let length = file.metadata().await.map_err(|_| StatusCode::NOT_FOUND)?.len();
    let fields = [
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"upload.bin\"".to_owned()),
    ];
    Ok((fields, Body::from_stream(ReaderStream::new(file))))
}

async fn count(body: Body) -> Result<String, StatusCode> {
    let length = body.into_data_stream().try_fold(0, async |sum, piece| Ok(sum + piece.len())).await;
    length.map(|length: usize| length.to_string()).map_err(|_| StatusCode::BAD_REQUEST)
}

async fn lines() -> Body {
    Body::from_stream(stream::iter(0..1000).map(|number| Ok::<_, std::io::Error>(format!("line {number}\n"))))
}

/// A body that fails after its first piece.
async fn broken() -> Response {
    let pieces = [Ok("begun, "), Err(std::io::Error::other("the disk is gone"))];
    Body::from_stream(stream::iter(pieces)).into_response()
}

fn app(folder: &Folder) -> Router {
    Router::new()
        .route("/file", get(download).post(upload))
        .route("/count", post(count))
        .route("/echo", post(async |body: Body| body))
        .route("/lines", get(lines))
        .route("/broken", get(broken))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(Arc::new(folder.path("upload.bin")))
}

fn content() -> Vec<u8> {
    (0..FILE_BYTES).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

/// Splits `body` into chunks of these sizes, repeated.
fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut rest = body;
    let mut out = Vec::new();
    for size in sizes.iter().cycle() {
        let (chunk, behind) = rest.split_at((*size).min(rest.len()));
        if chunk.is_empty() {
            break;
        }
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = behind;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[test]
fn a_file_goes_up_and_comes_down_the_same() {
    let folder = Folder::new("streaming-file");
    let server = serve(app(&folder));
    assert_eq!(ask_get(server.addr, "/file").status(), 404);
    let sent = content();
    assert_eq!(ask(server.addr, "POST", "/file", &[], &sent).text(), FILE_BYTES.to_string());
    assert!(std::fs::read(folder.path("upload.bin")).unwrap() == sent, "the file differs");

    let got = ask_get(server.addr, "/file");
    assert_eq!(got.head.field("content-disposition"), Some("attachment; filename=\"upload.bin\""));
    assert_eq!(got.head.content_length(), Some(FILE_BYTES));
    assert!(!got.head.is_chunked());
    assert!(got.body == sent, "what came down differs");
}

#[test]
fn a_chunked_body_is_counted_whole() {
    let folder = Folder::new("streaming-chunked");
    let server = serve(app(&folder));
    let mut client = Client::connect(server.addr);
    let body = chunked(&content(), &[1, 7, 4096, 100_000]);
    client.send("POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(body);
    assert_eq!(client.response("POST").text(), FILE_BYTES.to_string());
}

/// The echo arrives while the request is still being sent.
#[test]
fn an_echo_responses_before_the_body_ends() {
    let folder = Folder::new("streaming-echo");
    let server = serve(app(&folder));
    let mut client = Client::connect(server.addr);
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.chunk().unwrap(), b"first");
    client.send("6\r\nsecond\r\n");
    assert_eq!(client.chunk().unwrap(), b"second");
    client.send("0\r\n\r\n");
    assert_eq!(client.chunk(), None);
}

#[test]
fn a_stream_of_unknown_length_comes_in_chunks() {
    let folder = Folder::new("streaming-lines");
    let server = serve(app(&folder));
    let got = ask_get(server.addr, "/lines");
    assert!(got.head.is_chunked());
    assert_eq!(got.head.content_length(), None);
    assert_eq!(got.text().lines().count(), 1000);
    assert!(got.text().ends_with("line 999\n"));
}

/// The client sees the failure: there is no last chunk and the connection closes. If the head wasn't sent yet, it gets
/// a `500` or nothing.
#[test]
fn a_body_that_breaks_off_has_no_end() {
    let folder = Folder::new("streaming-broken");
    let server = serve(app(&folder));
    let mut client = Client::connect(server.addr);
    client.send("GET /broken HTTP/1.1\r\nHost: test\r\n\r\n");
    let bytes = client.rest();
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.starts_with("HTTP/1.1 200") && text.ends_with("0\r\n\r\n");
    assert!(!whole, "a broken body ends like a whole one: {text}");
    let honest =
        ["", "HTTP/1.1 200", "HTTP/1.1 500"].iter().any(|start| text.get(..12).unwrap_or("") == *start);
    assert!(honest, "{text}");
    assert_eq!(ask_get(server.addr, "/lines").status(), 200, "others are served");
}
