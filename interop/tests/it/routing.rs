//! Routers: nesting, merging, fallbacks, `405`, `HEAD`, `OPTIONS` and CORS.

use axum::Router;
use axum::extract::{MatchedPath, OriginalUri, Path};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Redirect;
use axum::routing::{any, get, on, post};
use tower_http::cors::{Any, CorsLayer};

use crate::serve::serve;

async fn where_am_i(matched: MatchedPath, OriginalUri(original): OriginalUri, uri: Uri) -> String {
    format!("{} {} {}", matched.as_str(), original, uri)
}

async fn parts(Path((user, rest)): Path<(String, String)>) -> String {
    format!("{user}|{rest}")
}

fn app() -> Router {
    let users = Router::new()
        .route("/{id}/where", get(where_am_i))
        .route("/{id}/files/{*rest}", get(parts))
        .fallback(async || (StatusCode::NOT_FOUND, "no such user page"));
    let misc = Router::new()
        .route("/get-or-post", get(async || "got").post(async || "posted"))
        .route("/any", any(async |method: Method| method.to_string()))
        .route("/trace", on(axum::routing::MethodFilter::TRACE, async || "traced"))
        .route("/old", get(async || Redirect::permanent("/any")))
        .route("/only-post", post(async || "posted"));
    Router::new()
        .nest("/users", users)
        .merge(misc)
        .fallback(async |uri: Uri| (StatusCode::NOT_FOUND, format!("nothing at {uri}")))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, "not like that"))
}

#[test]
fn nests_routers() {
    let server = serve(app());
    let at = server.get("/users/7/where?full=1");
    assert_eq!(at.text(), "/users/{id}/where /users/7/where?full=1 /7/where?full=1");
}

#[test]
fn decodes_parameters_once() {
    let server = serve(app());
    assert_eq!(server.get("/users/a%20b/files/x/%25y/z").text(), "a b|x/%y/z");
    assert_eq!(server.get("/users/%C3%A4/files/%2F").text(), "ä|/");
    assert_eq!(server.get("/users/%FF/files/x").status, 400, "what is no UTF-8 is no `String`");
}

#[test]
fn each_router_has_its_fallback() {
    let server = serve(app());
    let outer = server.get("/none?q");
    assert_eq!((outer.status, outer.text()), (404, "nothing at /none?q"));
    assert_eq!(server.get("/users/7/none").text(), "no such user page");
}

#[test]
fn routes_by_method() {
    let server = serve(app());
    let mut client = server.connect();
    assert_eq!(client.get("/get-or-post").text(), "got");
    assert_eq!(client.request("POST", "/get-or-post", &[]).text(), "posted");
    let refused = client.request("DELETE", "/get-or-post", &[]);
    assert_eq!((refused.status, refused.text()), (405, "not like that"));
    assert_eq!(refused.field("allow"), Some("GET,HEAD,POST"));
    for method in ["GET", "PUT", "PATCH", "OPTIONS", "BREW"] {
        assert_eq!(client.request(method, "/any", &[]).text(), method);
    }
}

#[test]
fn serves_head_by_get_routes() {
    let server = serve(app());
    let mut client = server.connect();
    let head = client.request("HEAD", "/get-or-post", &[]);
    assert_eq!((head.status, head.content_length()), (200, Some(3)));
    assert_eq!(client.get("/get-or-post").text(), "got");
    assert_eq!(client.request("HEAD", "/only-post", &[]).status, 405);
}

#[test]
fn redirects() {
    let server = serve(app());
    let moved = server.get("/old");
    assert_eq!((moved.status, moved.field("location")), (308, Some("/any")));
}

#[test]
fn responds_to_preflights_in_a_layer() {
    let cors = CorsLayer::new().allow_origin(Any).allow_methods([Method::GET, Method::DELETE]);
    let server = serve(app().layer(cors));
    let asked = ["Origin: http://shop.example", "Access-Control-Request-Method: DELETE"];
    let preflight = server.ask("OPTIONS", "/only-post", &asked, b"");
    assert_eq!(preflight.status, 200);
    assert_eq!(preflight.field("access-control-allow-methods"), Some("GET,DELETE"));
    let plain = server.ask("GET", "/any", &asked[..1], b"");
    assert_eq!(plain.field("access-control-allow-origin"), Some("*"));
}
