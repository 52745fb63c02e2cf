//! Routers and errors: nesting, fallbacks, `405`, `HEAD`, `OPTIONS`, CORS, custom errors, services that fail or panic.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleError;
use axum::extract::{MatchedPath, OriginalUri, Path};
use axum::http::{Method, Request, Response, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, get, post};
use futures_util::{StreamExt, stream};
use tower::service_fn;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};

use crate::serve::{serve, uri};

async fn where_am_i(matched: MatchedPath, OriginalUri(original): OriginalUri, uri: Uri) -> String {
    format!("{} {} {}", matched.as_str(), original, uri)
}

async fn parts(Path((user, rest)): Path<(String, String)>) -> String {
    format!("{user}|{rest}")
}

/// The application's error.
struct NoRoot(i64);

impl IntoResponse for NoRoot {
    fn into_response(self) -> axum::response::Response {
        (StatusCode::UNPROCESSABLE_ENTITY, format!("{} has none", self.0)).into_response()
    }
}

async fn root(Path(number): Path<i64>) -> Result<String, NoRoot> {
    number.checked_isqrt().map(|root| root.to_string()).ok_or(NoRoot(number))
}

/// A fallible tower service, which a router accepts only with an error handler.
async fn shaky(_: Request<Body>) -> Result<Response<Body>, io::Error> {
    Err(io::Error::other("the disk is full"))
}

async fn explain(method: Method, uri: Uri, error: io::Error) -> (StatusCode, String) {
    (StatusCode::BAD_GATEWAY, format!("{method} {uri}: {error}"))
}

fn app() -> Router {
    let users = Router::new()
        .route("/{id}/where", get(where_am_i))
        .route("/{id}/files/{*rest}", get(parts))
        .fallback(async || (StatusCode::NOT_FOUND, "no such user page"));
    let misc = Router::new()
        .route("/get-or-post", get(async || "got").post(async || "posted"))
        .route("/any", any(async |method: Method| method.to_string()))
        .route("/old", get(async || Redirect::permanent("/any")))
        .route("/only-post", post(async || "posted"))
        .route("/sqrt/{of}", get(root))
        .route_service("/shaky", HandleError::new(service_fn(shaky), explain));
    Router::new()
        .nest("/users", users)
        .merge(misc)
        .fallback(async |uri: Uri| (StatusCode::NOT_FOUND, format!("nothing at {uri}")))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, "not like that"))
}

#[test]
fn routes_requests_on_one_connection() {
    for server in serve(app) {
        let mut client = server.connect();
        let where_it_is =
            format!("/users/{{id}}/where {} {}", uri("/users/7/where?full=1"), uri("/7/where?full=1"));
        for (request, status, body) in [
            ("GET /users/7/where?full=1", 200, &*where_it_is),
            // Parameters are decoded once.
            ("GET /users/a%20b/files/x/%25y/z", 200, "a b|x/%y/z"),
            ("GET /users/%C3%A4/files/%2F", 200, "ä|/"),
            ("GET /none?q", 404, &*format!("nothing at {}", uri("/none?q"))),
            ("GET /users/7/none", 404, "no such user page"),
            ("GET /get-or-post", 200, "got"),
            ("HEAD /get-or-post", 200, ""),
            ("POST /get-or-post", 200, "posted"),
            ("DELETE /get-or-post", 405, "not like that"),
            ("HEAD /only-post", 405, ""),
            ("PATCH /any", 200, "PATCH"),
            ("OPTIONS /any", 200, "OPTIONS"),
            ("BREW /any", 200, "BREW"),
            ("GET /old", 308, ""),
            ("GET /sqrt/144", 200, "12"),
            ("GET /sqrt/-1", 422, "-1 has none"),
            ("GET /shaky?fail", 502, &*format!("GET {}: the disk is full", uri("/shaky?fail"))),
        ] {
            let (method, target) = request.split_once(' ').unwrap();
            let response = client.request(method, target, &[]);
            assert_eq!((response.status, response.text()), (status, body), "{request}");
        }
        let text = client.get("/users/%FF/files/x");
        assert_eq!(text.status, 400, "what is no UTF-8 is no `String`");
        assert_eq!(client.request("HEAD", "/get-or-post", &[]).content_length(), Some(3));
        assert_eq!(client.request("DELETE", "/get-or-post", &[]).field("allow"), Some("GET,HEAD,POST"));
        assert_eq!(client.get("/old").field("location"), Some("/any"));
    }
}

#[test]
fn responds_to_preflights_in_a_layer() {
    let cors = || CorsLayer::new().allow_origin(Any).allow_methods([Method::GET, Method::DELETE]);
    for server in serve(|| app().layer(cors())) {
        let asked = ["Origin: http://shop.example", "Access-Control-Request-Method: DELETE"];
        let preflight = server.ask("OPTIONS", "/only-post", &asked, b"");
        assert_eq!(preflight.status, 200);
        assert_eq!(preflight.field("access-control-allow-methods"), Some("GET,DELETE"));
        let plain = server.ask("GET", "/any", &asked[..1], b"");
        assert_eq!(plain.field("access-control-allow-origin"), Some("*"));
    }
}

/// A panic that the compiler can't predict.
fn divide_by(zero: usize) -> String {
    (1 / zero).to_string()
}

async fn panic_later() -> String {
    tokio::task::yield_now().await;
    divide_by(0)
}

/// A body whose second poll panics.
async fn panic_in_the_body() -> Body {
    Body::from_stream(stream::iter([1, 0]).map(|number| Ok::<_, io::Error>(divide_by(number))))
}

#[test]
fn catches_panics_in_a_layer_and_cuts_off_bodies_that_panic() {
    let told = |_: Box<dyn std::any::Any + Send>| -> Response<Body> {
        let response = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
        response.body(Body::from("we are sorry")).unwrap()
    };
    let app = || {
        let app = Router::new().route("/", get(async || "served")).route("/now", get(async || divide_by(0)));
        let app = app.route("/later", get(panic_later)).route("/body", get(panic_in_the_body));
        app.layer(CatchPanicLayer::custom(told))
    };
    for server in serve(app) {
        let mut client = server.connect();
        for path in ["/now", "/later", "/now"] {
            let response = client.get(path);
            assert_eq!((response.status, response.text()), (500, "we are sorry"));
        }
        assert_eq!(client.get("/").text(), "served", "on the same connection");
        let status = client.ask("GET", "/body", &[]).head().status;
        let (_, is_cut) = client.body_or_cut();
        assert!(status == 500 || is_cut, "{status}: a body without an end looks whole");
        assert_eq!(server.get("/").text(), "served");
    }
}
