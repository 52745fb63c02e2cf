//! Requests as handlers see them, responses as clients see them, and native routes in front of a router.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use axum::response::{AppendHeaders, IntoResponse};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use shearwater::{App, Error, Fast, Request, Response, TrustedProxies, after, buffered, guard};

use crate::served::{Served, drivers, here};

#[derive(serde::Deserialize)]
struct Page {
    number: u32,
}

fn router() -> Router {
    let counted = Arc::new(AtomicU64::new(0));
    Router::new()
        .route("/", get(|| async { "root" }))
        .route(
            "/count",
            get(|State(counted): State<Arc<AtomicU64>>| async move {
                counted.fetch_add(1, Ordering::Relaxed).to_string()
            }),
        )
        .route("/user/{id}", get(user))
        .route("/page", get(|Query(page): Query<Page>| async move { format!("page {}", page.number) }))
        .route("/json", post(|Json(value): Json<Value>| async move { Json(json!({ "got": value })) }))
        .route(
            "/created",
            post(|| async { (StatusCode::CREATED, AppendHeaders([("x-own", "1"), ("x-own", "2")]), "made") }),
        )
        .route("/said", any(said))
        .with_state(counted)
}

/// Takes longer for smaller numbers.
async fn user(Path(id): Path<u32>) -> String {
    for _ in id..8 {
        tokio::task::yield_now().await;
    }
    format!("user {id}")
}

/// Describes a request without its body.
async fn said(method: Method, uri: Uri, version: Version, fields: HeaderMap) -> impl IntoResponse {
    let own: Vec<_> = fields.get_all("x-own").iter().map(|value| value.as_bytes().to_vec()).collect();
    let host = fields.get(header::HOST).map(|host| host.to_str().expect("ASCII"));
    let host = host.or_else(|| uri.host()).unwrap_or_default();
    format!("{method} {uri} {version:?} {host} {own:?}")
}

#[test]
fn runs_extractors_and_state() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        assert_eq!(client.get("/").text(), "root");
        assert_eq!(client.get("/count").text(), "0");
        assert_eq!(client.get("/count").text(), "1");
        assert_eq!(client.get("/user/17").text(), "user 17");
        assert_eq!(client.get("/user/x").status, 400);
        assert_eq!(client.get("/page?number=3").text(), "page 3");
        let response =
            client.send_body("POST", "/json", &["Content-Type: application/json"], br#"{"a":[1]}"#);
        assert_eq!((response.status, response.field("content-type")), (200, Some("application/json")));
        assert_eq!(response.text(), r#"{"got":{"a":[1]}}"#);
        assert_eq!(client.send_body("POST", "/json", &[], b"{}").status, 415);
        let created = client.send_body("POST", "/created", &[], b"");
        assert_eq!((created.status, created.text()), (201, "made"));
        let own = created.fields.iter().filter(|(name, _)| name == "x-own").count();
        assert_eq!(own, 2, "{created:?}");
        assert_eq!(served.totals().requests, 9, "on one connection");
    }
}

#[test]
fn passes_requests_as_they_were_sent() {
    if testkit::http2::skips("its requests are lines of HTTP/1") {
        return;
    }
    if testkit::tls::skips("its targets begin with http") {
        return;
    }
    let served = Served::new(router());
    let mut client = served.connect();
    let response = client.request("DELETE", "/said?a=%20b", &["X-Own: 1", "x-own: \u{e9}"]);
    assert_eq!(response.text(), "DELETE /said?a=%20b HTTP/1.1 localhost [[49], [195, 169]]");
    client.send("PROPFIND http://example.org/said HTTP/1.1\r\nHost: example.org\r\n\r\n");
    assert_eq!(
        client.response("PROPFIND").text(),
        "PROPFIND http://example.org/said HTTP/1.1 example.org []"
    );
    client.send("GET /said HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
    let response = client.response("GET");
    assert_eq!(response.text(), "GET /said HTTP/1.0 h []");
    assert_eq!(response.field("Connection"), Some("keep-alive"));
    client.send("GET /said HTTP/1.0\r\nHost: h\r\n\r\n");
    assert_eq!(client.response("GET").field("Connection"), Some("close"));
    client.is_ended();
}

#[test]
fn rejects_targets_of_another_scheme() {
    if testkit::tls::skips("its targets begin with http") {
        return;
    }
    for driver in drivers() {
        let served = Served::on(driver, router());
        assert_eq!(served.connect().get("https://example.org/said").status, 421);
        let serve = here(router())
            .driver(driver)
            .server(|server| server.trusted_proxies(TrustedProxies::new(["127.0.0.1"]).expect("an address")));
        let served = Served::of(serve);
        let response = served.connect().get("https://example.org/said");
        let version = if testkit::http2::is_on() { "HTTP/2.0" } else { "HTTP/1.1" };
        assert_eq!(response.text(), format!("GET https://example.org/said {version} example.org []"));
        assert_eq!(served.connect().get("ftp://example.org/said").status, 421);
    }
}

#[test]
fn leaves_axums_own_responses_unchanged() {
    let served = Served::new(router());
    let mut client = served.connect();
    assert_eq!(client.get("/none").status, 404);
    let response = client.request("PUT", "/", &[]);
    assert_eq!((response.status, response.field("allow")), (405, Some("GET,HEAD")));
    let response = client.request("HEAD", "/", &[]);
    assert_eq!((response.status, response.field("content-length")), (200, Some("4")));
    assert_eq!(client.get("/").text(), "root", "nothing stands between the two");
}

/// Later handlers complete first, and their responses wait.
#[test]
fn responds_to_pipelined_requests_in_order() {
    let served = Served::new(router());
    let mut client = served.connect();
    let all: String = (0..50).map(|id| format!("GET /user/{id} HTTP/1.1\r\nHost: h\r\n\r\n")).collect();
    client.send(all);
    for id in 0..50 {
        assert_eq!(client.response("GET").text(), format!("user {id}"));
    }
}

#[test]
fn inserts_the_clients_address_on_request() {
    let router = || {
        Router::new().route(
            "/",
            get(|peer: Option<axum::Extension<ConnectInfo<SocketAddr>>>| async move {
                peer.map_or("nobody".to_owned(), |peer| peer.0.0.to_string())
            }),
        )
    };
    for driver in drivers() {
        let served = Served::of(here(router()).driver(driver).connect_info());
        let mut client = served.connect();
        let own = client.stream().local_addr().expect("an address").to_string();
        assert_eq!(client.get("/").text(), own);
        let served = Served::on(driver, router());
        assert_eq!(served.connect().get("/").text(), "nobody");
    }
}

#[test]
fn shares_state_between_workers() {
    let served = Served::of(here(router()).workers(3));
    let mut numbers: Vec<u64> =
        (0..30).map(|_| served.connect().get("/count").text().parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..30).collect::<Vec<_>>());
}

#[test]
fn passes_unmatched_requests_to_the_router() {
    for driver in drivers() {
        let fast = App::new().route("/plaintext", shearwater::get(Fast::text("fast"))).route(
            "/echo",
            shearwater::post(buffered(1024, |_: &Request, body: &[u8], response: &mut Response| {
                response.body(body);
            })),
        );
        let router = Router::new()
            .route("/plaintext", any(|| async { "routed" }))
            .route("/", get(|| async { "root" }));
        let served = Served::of(here(router).driver(driver).fast(fast));
        let mut client = served.connect();
        for (method, target, expected) in
            [("GET", "/plaintext", "fast"), ("PUT", "/plaintext", "routed"), ("GET", "/", "root")]
        {
            assert_eq!(client.request(method, target, &[]).text(), expected, "{method} {target}");
        }
        assert_eq!(client.send_body("POST", "/echo", &[], b"said").text(), "said");
        assert_eq!(client.get("/none").status, 404);
    }
}

#[test]
fn rejects_an_app_that_leaves_nothing_to_the_router() {
    let fast = App::new().fallback(|_: &Request, response: &mut Response| {
        response.text("all");
    });
    assert!(matches!(here(Router::new()).fast(fast).start().err(), Some(Error::Routes(_))));
}

/// A body of one byte a frame, each after a yield.
struct Slow {
    left: &'static [u8],
    is_due: bool,
}

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
        self.is_due = !self.is_due;
        if !self.is_due {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some((first, rest)) = self.left.split_at_checked(1) else { return Poll::Ready(None) };
        self.left = rest;
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(first)))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.left.len() as u64)
    }
}

/// Responds with the requested status, immediately, deferred, or with a body that follows.
async fn response(Path((status, when)): Path<(u16, String)>) -> axum::response::Response {
    match when.as_str() {
        "soon" => tokio::task::yield_now().await,
        "late" => tokio::time::sleep(Duration::from_millis(1)).await,
        _ => {}
    }
    let status = StatusCode::from_u16(status).expect("a status");
    let mut response = match status {
        StatusCode::OK => "answer".into_response(),
        _ => status.into_response(),
    };
    if status == StatusCode::OK && when == "streamed" {
        *response.body_mut() = axum::body::Body::new(Slow { left: b"answer", is_due: true });
    }
    response
}

/// Middleware sees a service's response, immediate, deferred or streamed, for each method; the bytes are the same.
#[test]
fn middleware_treats_all_responses_alike() {
    for driver in drivers() {
        let seen: Arc<Mutex<Vec<u16>>> = Arc::default();
        let seeing = Arc::clone(&seen);
        let fast = App::new().with(after(move |request: &Request, response: &mut Response| {
            let status = response.status_code();
            seeing.lock().expect("no panic").push(status);
            response.field("Seen", status.to_string());
            if request.query_raw() == Some("replace") {
                response.status(410).html("<p>after");
            }
        }));
        let router = Router::new().route("/{status}/{when}", get(response));
        let served = Served::of(here(router).driver(driver).fast(fast));
        let exchange = |method: &str, target: &str| {
            let bytes = served.connect().ask(method, target, &["Connection: close"]).rest();
            let text = String::from_utf8(bytes).expect("text");
            text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect::<String>()
        };
        for (status, body) in [(200, "answer"), (404, ""), (204, ""), (405, "")] {
            let path = if status == 405 { "/200" } else { &format!("/{status}") };
            for method in if status == 405 { &["POST"][..] } else { &["GET", "HEAD"] } {
                let sent = ["now", "soon", "late", "streamed"].map(|when| {
                    let sent = exchange(method, &format!("{path}/{when}"));
                    assert_eq!(std::mem::take(&mut *seen.lock().expect("no panic")), [status], "{sent}");
                    sent
                });
                let first = &sent[0];
                assert!(first.starts_with(&format!("HTTP/1.1 {status} ")), "{first}");
                assert!(first.contains(&format!("Seen: {status}\r\n")), "{first}");
                let body = if *method == "HEAD" { "" } else { body };
                assert!(first.ends_with(&format!("\r\n\r\n{body}")), "{first}");
                assert!(sent.iter().all(|sent| sent == first), "{method} {status}: {sent:#?}");
            }
            let replaced =
                ["now", "soon", "late"].map(|when| exchange("GET", &format!("{path}/{when}?replace")));
            seen.lock().expect("no panic").clear();
            let first = &replaced[0];
            assert!(first.starts_with("HTTP/1.1 410 ") && first.ends_with("\r\n\r\n<p>after"), "{first}");
            assert!(replaced.iter().all(|sent| sent == first), "{status}: {replaced:#?}");
        }
    }
}

/// The router of another framework gets targets as they were sent, so a guard in front of it covers both meanings of a
/// path: with its dot segments and without.
#[test]
fn no_dot_segment_bypasses_a_guard_in_front_of_a_router() {
    const PIECES: [&str; 7] = ["/admin", "/open", "/..", "/.%2E", "/.", "/%61dmin", "/"];
    async fn sent(uri: Uri) -> String {
        format!("sent {}", uri.path_and_query().expect("a path"))
    }
    let fast = App::new().route("/open/here", shearwater::get("native")).scope("/admin", |admin| {
        admin.with(guard(|_: &Request, response: &mut Response| {
            response.status(403).text("guarded");
            ControlFlow::Break(())
        }))
    });
    let router = Router::new()
        .route("/admin/{*rest}", get(|| async { "secret" }))
        .route("/open/{*rest}", get(sent))
        .route("/%61dmin/{*rest}", get(sent));
    let served = Served::of(here(router).fast(fast));
    for (target, status, body) in [
        ("/open/../admin/x", 403, "guarded"),
        ("/admin/../open/x", 403, "guarded"),
        ("/admin/%2e%2E/open/x", 403, "guarded"),
        ("/./admin/.././open/x", 403, "guarded"),
        ("/%61dmin/../open/x", 403, "guarded"),
        ("/open/./a/../x?/../y", 200, "sent /open/./a/../x?/../y"),
        ("/admin/../open/here", 200, "native"),
        ("/a/../open/here", 200, "native"),
        ("/open/../../admin/x", 400, ""),
    ] {
        let response = served.connect().get(target);
        assert_eq!(response.status, status, "{target}");
        assert!(body.is_empty() || response.text() == body, "{target}: {}", response.text());
    }
    let (mut client, mut counts) = (served.connect(), [0; 2]);
    for number in 0..PIECES.len().pow(4) {
        let pieces = (0..4).map(|digit| PIECES[number / PIECES.len().pow(digit) % PIECES.len()]);
        let target = pieces.collect::<String>();
        let response = client.get(&target);
        assert_ne!(response.text(), "secret", "{target}");
        counts[0] += usize::from(response.text() == "guarded");
        counts[1] += usize::from(response.text().starts_with("sent "));
        if response.status == 400 {
            client = served.connect();
        }
    }
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}
