//! Multipart forms: parts of every size, and every split of the body.

use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::client::{ClientResponse, Client, ask};
use crate::serve::serve;

const FORM_BYTES_MAX: usize = 1024 * 1024;
const BOUNDARY: &str = "----wave";

/// A part's name, file name, type, length and the sum of its bytes.
async fn upload(mut form: Multipart) -> Result<Json<Vec<Value>>, (StatusCode, String)> {
    let refused = |error: MultipartError| (error.status(), error.body_text());
    let mut parts = Vec::new();
    while let Some(mut part) = form.next_field().await.map_err(refused)? {
        let mut about = json!({ "name": part.name(), "file": part.file_name(), "type": part.content_type() });
        let (mut length, mut sum) = (0, 0_u64);
        while let Some(piece) = part.chunk().await.map_err(refused)? {
            length += piece.len();
            sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        about["length"] = json!(length);
        about["sum"] = json!(sum);
        parts.push(about);
    }
    Ok(Json(parts))
}

fn app() -> Router {
    Router::new().route("/upload", post(upload)).layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

/// A form with a text and a file.
fn form(file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA photo\r\n\
         --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"sea.jpg\"\r\n\
         Content-Type: image/jpeg\r\n\r\n"
    );
    [head.as_bytes(), file, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat()
}

fn post_form(client: &mut Client, body: &[u8]) -> ClientResponse {
    client.ask("POST", "/upload", &[&format!("Content-Type: multipart/form-data; boundary={BOUNDARY}")], body)
}

fn expected(file: &[u8]) -> Value {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    json!([
        { "name": "title", "file": null, "type": null, "length": 7, "sum": sum(b"A photo") },
        { "name": "photo", "file": "sea.jpg", "type": "image/jpeg", "length": file.len(), "sum": sum(file) },
    ])
}

#[test]
fn parts_arrive_with_their_names_types_and_bytes() {
    let server = serve(app());
    let mut client = Client::connect(server.addr);
    for length in [0, 1, 1000, 100_000, 900_000] {
        let file: Vec<u8> = (0..length).map(|at| u8::try_from(at % 253).unwrap()).collect();
        let response = post_form(&mut client, &form(&file));
        assert_eq!((response.status(), response.json()), (200, expected(&file)), "{length} bytes");
    }
}

/// Splits a small form into two sends at each byte, so that each byte of a boundary is a split point. Uses a new
/// connection each time: a handler that has seen the last boundary may respond before the final line end has arrived,
/// and the server may then close.
#[test]
fn a_form_may_be_cut_anywhere() {
    let server = serve(app());
    let body = form(b"\r\n--\r\n----wav");
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: test\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    for cut in 0..body.len() {
        let mut client = Client::connect(server.addr);
        client.send([head.as_bytes(), &body[..cut]].concat());
        client.send(&body[cut..]);
        let response = client.response("POST");
        assert_eq!((response.status(), response.json()), (200, expected(b"\r\n--\r\n----wav")), "cut at {cut}");
    }
}

#[test]
fn what_is_no_form_is_refused() {
    let server = serve(app());
    assert_eq!(ask(server.addr, "POST", "/upload", &["Content-Type: text/plain"], b"x").status(), 400);
    let whole = form(b"data");
    let cut_off = post_form(&mut Client::connect(server.addr), &whole[..whole.len() - 10]);
    assert_eq!(cut_off.status(), 400);
    let too_large = post_form(&mut Client::connect(server.addr), &form(&vec![1; FORM_BYTES_MAX]));
    assert_eq!(too_large.status(), 413);
}
