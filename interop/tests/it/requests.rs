//! Requests: extractors, body limits, multipart forms.

use axum::body::Bytes;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, Extension, Form, Multipart, Query, RawQuery, Request};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::AppendHeaders;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::{ClientResponse, TestClient};

use crate::serve::{Json as _, serve, uri};

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

async fn fields(headers: HeaderMap) -> Json<Value> {
    let all = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    Json(
        json!({ "host": all("host"), "x-twice": all("x-twice"), "x-odd": all("x-odd"), "empty": all("x-empty") }),
    )
}

async fn whole(request: Request) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1024).await.unwrap();
    format!("{} {} {:?} {}", parts.method, parts.uri, parts.version, body.len())
}

fn extractor_app() -> Router {
    Router::new()
        .route("/form", post(async |Form(order): Form<Order>| Json(order)))
        .route("/json", post(async |Json(order): Json<Order>| Json(order)))
        .route("/query", get(async |Query(order): Query<Order>| Json(order)))
        .route("/raw", get(async |RawQuery(query): RawQuery| query.unwrap_or("none".to_owned())))
        .route("/fields", get(fields))
        .route("/uri", get(async |uri: Uri| uri.to_string()))
        .route("/whole", post(whole))
        .route("/name", get(async |Extension(name): Extension<&'static str>| name))
        .route(
            "/cookies",
            get(async || AppendHeaders([(header::SET_COOKIE, "a=1"), (header::SET_COOKIE, "b=2")])),
        )
        .layer(Extension("petrel"))
}

/// Origin form and absolute form (RFC 9112 section 3.2).
#[test]
fn extracts_every_part_of_a_request() {
    for server in serve(extractor_app) {
        let (form, json) =
            ("Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json");
        let order = json!({ "item": "rope & tar", "count": 3 });
        assert_eq!(server.ask("POST", "/form", &[form], b"item=rope+%26+tar&count=3").json(), order);
        assert_eq!(server.get("/query?item=rope%20%26%20tar&count=3").json(), order);
        assert_eq!(server.ask("POST", "/json", &[json], order.to_string().as_bytes()).json(), order);
        for (target, header, body, status) in [
            ("/form", form, "item=rope&count=many", 422),
            ("/json", json, "{ \"item\": \"rope\" }", 422),
            ("/json", json, "{ no json", 400),
            ("/json", "Content-Type: text/plain", "{}", 415),
        ] {
            assert_eq!(
                server.ask("POST", target, &[header], body.as_bytes()).status,
                status,
                "{target} {body}"
            );
        }
        for (target, text) in [
            ("/raw?a=%41&&b", "a=%41&&b"),
            ("/raw", "none"),
            ("/name", "petrel"),
            ("/uri?q=%C3%A4", &*uri("/uri?q=%C3%A4")),
            ("http://test/uri?x", "http://test/uri?x"),
        ] {
            assert_eq!(server.get(target).text(), text, "{target}");
        }
        let mut client = server.connect();
        let version = if testkit::http2::is_on() { "HTTP/2.0" } else { "HTTP/1.1" };
        let with_body = client.send_body("POST", "/whole?a", &[], b"12345");
        assert_eq!(with_body.text(), format!("POST {} {version} 5", uri("/whole?a")));
        let without = client.request("POST", "/whole", &[]);
        assert_eq!(without.text(), format!("POST {} {version} 0", uri("/whole")));
    }
}

#[test]
fn passes_headers_as_they_were_sent() {
    for server in serve(extractor_app) {
        let sent = ["X-Twice: one", "x-twice:two", "X-Odd: caf\u{e9} \t end", "X-Empty:"];
        let seen = server.ask("GET", "/fields", &sent, b"").json();
        let odd = "caf\u{e9} \t end";
        // Over HTTP/2 the URI has the host.
        let host: &[&str] = if testkit::http2::is_on() { &[] } else { &["localhost"] };
        assert_eq!(seen, json!({ "host": host, "x-twice": ["one", "two"], "x-odd": [odd], "empty": [""] }));
        assert_eq!(server.get("/cookies").all("set-cookie"), ["a=1", "b=2"]);
    }
}

/// axum's default limit.
const DEFAULT_BYTES_MAX: usize = 2 * 1024 * 1024;
const SMALL_BYTES_MAX: usize = 1000;

/// A client that is still sending gets the response before the connection closes.
#[test]
fn rejects_bodies_over_axums_limits() {
    let app = || {
        let count = async |body: Bytes| body.len().to_string();
        let small = Router::new().route("/small", post(count)).layer(DefaultBodyLimit::max(SMALL_BYTES_MAX));
        Router::new().route("/default", post(count)).merge(small)
    };
    for server in serve(app) {
        for (path, bytes_max) in [("/small", SMALL_BYTES_MAX), ("/default", DEFAULT_BYTES_MAX)] {
            let body = vec![b'x'; bytes_max + 1];
            let fits = server.ask("POST", path, &[], &body[1..]);
            assert_eq!((fits.status, fits.text()), (200, bytes_max.to_string().as_str()));
            assert_eq!(server.ask("POST", path, &[], &body).status, 413);
        }
        for (length, status) in [(SMALL_BYTES_MAX, 200), (SMALL_BYTES_MAX + 1, 413)] {
            let mut client = server.connect();
            client.ask_chunked("POST", "/small", &[]);
            (0..length).for_each(|_| _ = client.chunk("x"));
            assert_eq!(client.last_chunk(&[]).response("POST").status, status, "{length} chunks");
        }
    }
}

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

fn form_app() -> Router {
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

fn post_form(client: &mut TestClient, body: &[u8]) -> ClientResponse {
    client.send_body(
        "POST",
        "/upload",
        &[&format!("Content-Type: multipart/form-data; boundary={BOUNDARY}")],
        body,
    )
}

fn expected(file: &[u8]) -> Value {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    json!([
        { "name": "title", "file": null, "type": null, "length": 7, "sum": sum(b"A photo") },
        { "name": "photo", "file": "sea.jpg", "type": "image/jpeg", "length": file.len(), "sum": sum(file) },
    ])
}

#[test]
fn reads_multipart_forms_of_every_size_and_rejects_invalid_ones() {
    for server in serve(form_app) {
        let mut client = server.connect();
        for length in [0, 1, 1000, 100_000, 900_000] {
            let file: Vec<u8> = (0..length).map(|at| u8::try_from(at % 253).unwrap()).collect();
            let response = post_form(&mut client, &form(&file));
            assert_eq!((response.status, response.json()), (200, expected(&file)), "{length} bytes");
        }
        assert_eq!(server.ask("POST", "/upload", &["Content-Type: text/plain"], b"x").status, 400);
        let whole = form(b"data");
        let cut_off = post_form(&mut server.connect(), &whole[..whole.len() - 10]);
        assert_eq!(cut_off.status, 400);
        let too_large = post_form(&mut server.connect(), &form(&vec![1; FORM_BYTES_MAX]));
        assert_eq!(too_large.status, 413);
    }
}

/// Splits a small form into two sends at each byte, so that each byte of a boundary is a split point. Uses a new
/// connection each time: a handler that has seen the last boundary may respond before the final line end has arrived,
/// and the server may then close.
#[test]
fn reads_multipart_forms_however_split() {
    let body = form(b"\r\n--\r\n----wav");
    let content_type = format!("Content-Type: multipart/form-data; boundary={BOUNDARY}");
    let length = format!("Content-Length: {}", body.len());
    for server in serve(form_app) {
        for cut in 0..body.len() {
            let mut client = server.connect();
            client.ask("POST", "/upload", &[&content_type, &length]);
            let response = client.send(&body[..cut]).send(&body[cut..]).response("POST");
            assert_eq!(
                (response.status, response.json()),
                (200, expected(b"\r\n--\r\n----wav")),
                "cut at {cut}"
            );
        }
    }
}
