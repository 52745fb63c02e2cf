//! Fast routes: their responses equal those of a handler.

use shearwater::{App, Cors, DriverChoice, Fast, get, post, put};
use testkit::{ClientResponse, TestClient};

use crate::served::{Served, drivers, here, text};

/// Longer than bodies that are copied after the head.
const LARGE: usize = 100_000;

fn app() -> App {
    App::new()
        .route("/text", get(Fast::text("Hello, World!")))
        .route("/text-by-handler", get(text("Hello, World!")))
        .route(
            "/json",
            get(Fast::json(r#"{"a":1}"#.to_owned()).cache_control("max-age=60").field("X-A", "b")),
        )
        .route("/empty", get(Fast::bytes("image/png", Vec::new())))
        .route("/large", get(Fast::bytes("application/octet-stream", vec![b'x'; LARGE])))
        .route("/methods", post(Fast::text("a")).put("a"))
}

/// Returns a response without its `Date`.
fn timeless(mut response: ClientResponse) -> ClientResponse {
    response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    response
}

/// Asserts the fields after the server's own.
#[track_caller]
fn assert_fields(response: &ClientResponse, expected: &[(&str, &str)]) {
    let is_own = |name: &str| ["date", "server"].iter().any(|own| name.eq_ignore_ascii_case(own));
    let fields: Vec<_> = response.fields.iter().filter(|(name, _)| !is_own(name)).collect();
    let is_as_expected = |((name, value), expected): (&&(String, String), &(&str, &str))| {
        name.eq_ignore_ascii_case(expected.0) && value == expected.1
    };
    let is_equal = fields.len() == expected.len() && fields.iter().zip(expected).all(is_as_expected);
    assert!(is_equal, "{fields:?}, not {expected:?}");
}

fn responses_with(driver: DriverChoice) {
    let served = Served::of(here().driver(driver), app());
    let mut client = served.connect();
    let fast = timeless(client.get("/text"));
    assert_eq!(fast, timeless(client.get("/text-by-handler")));
    assert_eq!(fast.text(), "Hello, World!");
    let json = client.get("/json");
    assert_eq!(json.text(), r#"{"a":1}"#);
    let expected = [
        ("Content-Type", "application/json"),
        ("Cache-Control", "max-age=60"),
        ("X-A", "b"),
        ("Content-Length", "7"),
    ];
    assert_fields(&json, &expected);
    let head = client.request("HEAD", "/json", &[]);
    assert_fields(&head, &expected);
    let empty = client.get("/empty");
    assert_fields(&empty, &[("Content-Type", "image/png"), ("Content-Length", "0")]);
    let large = client.get("/large");
    assert_eq!(large.body, [b'x'; LARGE]);
}

#[test]
fn fast_routes_respond_like_handlers() {
    for driver in drivers() {
        responses_with(driver);
    }
}

#[test]
fn responds_to_pipelined_requests_in_order() {
    let served = Served::app(app());
    let mut client = served.connect();
    let targets = ["/text", "/large", "/json", "/text"];
    let all: String = targets.map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).concat();
    client.send(all);
    let lens = targets.map(|_| client.response("GET").body.len());
    assert_eq!(lens, [13, LARGE, 7, 13]);
}

#[test]
fn fast_route_accepts_only_its_methods() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, status, allow) in [
        ("POST", 200, None),
        ("PUT", 200, None),
        ("GET", 405, Some("POST, PUT, OPTIONS")),
        ("HEAD", 405, Some("POST, PUT, OPTIONS")),
        ("OPTIONS", 204, Some("POST, PUT, OPTIONS")),
    ] {
        let response = client.request(method, "/methods", &["Content-Length: 0"]);
        assert_eq!((response.status, response.field("Allow")), (status, allow), "{method}");
    }
    assert_eq!(client.send_body("POST", "/methods", &[], b"abc").text(), "a", "the body is thrown away");
}

#[test]
fn one_path_can_have_several_fast_routes() {
    let app = App::new().route("/a", get("got").post("posted")).route("/a", put("put"));
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, text) in [("GET", "got"), ("POST", "posted"), ("PUT", "put")] {
        assert_eq!(client.request(method, "/a", &["Content-Length: 0"]).text(), text);
    }
    assert_eq!(client.request("DELETE", "/a", &[]).field("Allow"), Some("GET, POST, PUT, HEAD, OPTIONS"));
}

/// Returns the response to a page's request from an origin.
fn from(client: &mut TestClient, method: &str, path: &str, origin: Option<&str>) -> ClientResponse {
    let origin = origin.map(|origin| format!("Origin: {origin}"));
    let fields: Vec<_> = origin.iter().map(String::as_str).collect();
    client.request(method, path, &fields)
}

fn shared() -> App {
    let any = Cors::any().expose("X-A").headers("X-B, X-C").max_age_s(600);
    let own = Cors::origins(["https://a.example", "http://b.example:8080"]).credentials();
    App::new()
        .route("/any", get(Fast::json("[]")).cors(any))
        .route("/own", post(text("own")).cors(own))
        .route("/nobody", get("a").cors(Cors::origins::<String>([])))
}

#[test]
fn allows_every_origin() {
    let served = Served::app(shared());
    let mut client = served.connect();
    for origin in [None, Some("https://a.example")] {
        let response = from(&mut client, "GET", "/any", origin);
        let expected = [
            ("Content-Type", "application/json"),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Expose-Headers", "X-A"),
            ("Content-Length", "2"),
        ];
        assert_fields(&response, &expected);
        let preflight = from(&mut client, "OPTIONS", "/any", origin);
        let expected = [
            ("Allow", "GET, HEAD, OPTIONS"),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Methods", "GET, HEAD"),
            ("Access-Control-Allow-Headers", "X-B, X-C"),
            ("Access-Control-Max-Age", "600"),
        ];
        assert_eq!(preflight.status, 204);
        assert_fields(&preflight, &expected);
    }
}

#[test]
fn allows_only_listed_origins() {
    let served = Served::app(shared());
    let mut client = served.connect();
    for (origin, is_allowed) in [
        (Some("https://a.example"), true),
        (Some("http://b.example:8080"), true),
        (Some("http://a.example"), false),
        (Some("https://a.example.evil"), false),
        (Some("null"), false),
        (None, false),
    ] {
        let response = from(&mut client, "POST", "/own", origin);
        let preflight = from(&mut client, "OPTIONS", "/own", origin);
        let allowed = origin.filter(|_| is_allowed);
        let credentials = is_allowed.then_some("true");
        for response in [&response, &preflight] {
            assert_eq!(response.field("Access-Control-Allow-Origin"), allowed, "{origin:?}");
            assert_eq!(response.field("Access-Control-Allow-Credentials"), credentials, "{origin:?}");
            assert_eq!(response.field("Vary"), Some("Origin"), "{origin:?}");
        }
        assert_eq!((response.status, response.text()), (200, "own"));
        let methods = is_allowed.then_some("POST");
        assert_eq!((preflight.status, preflight.field("Access-Control-Allow-Methods")), (204, methods));
        assert_eq!(preflight.field("Allow"), Some("POST, OPTIONS"));
        let nobody = from(&mut client, "GET", "/nobody", origin);
        assert_eq!((nobody.text(), nobody.field("Access-Control-Allow-Origin")), ("a", None));
    }
}
