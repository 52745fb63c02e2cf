//! Routes with parameters, and mounted services.

use std::cell::Cell;

use shearwater::engine::{BodyPolicy, Head};
use shearwater::{
    App, Call, Fast, Method, Reading, Request, Response, Service, buffered, delete, get, later_reading, on,
    post,
};

use crate::served::{Served, text};

/// Responds with a name and the values of these parameters.
fn show(
    name: &'static str,
    params: &'static [&'static str],
) -> impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync {
    move |request, response| {
        let shown = params.iter().map(|param| request.param_raw(param).unwrap_or("none"));
        response.text(&[name].into_iter().chain(shown).collect::<Vec<_>>().join(" "));
    }
}

fn app() -> App {
    App::new()
        .route("/user/{id}", get(show("user", &["id", "other"])))
        .route("/user/{id}", delete(show("delete", &["id"])))
        .route("/user/me", get(show("me", &["id"])))
        .route("/user/{id}/post/{post}", get(show("post", &["id", "post"])))
        .route("/{a}/{b}/{c}/{d}/{e}", get(show("five", &["a", "b", "c", "d", "e"])))
        .route("/files/{*rest}", get(show("files", &["rest"])))
        .route("/image-{number}.png", get(show("image", &["number"])))
        .route("/{{literal}}", get(show("literal", &[])))
        .route("/other/{name}", get(show("other", &["name"])))
        .route("/other/fixed/{name}", get(show("fixed", &["name"])))
}

#[test]
fn matches_patterns() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/user/7", 200, "user 7 none"),
        ("GET", "/user/7?id=8", 200, "user 7 none"),
        ("GET", "http://localhost/user/7", 200, "user 7 none"),
        ("GET", "/user/a%20b", 200, "user a%20b none"),
        ("GET", "/none/../user/./x/%2e%2E/8", 200, "user 8 none"),
        ("GET", "/user/%2F", 200, "user %2F none"),
        ("DELETE", "/user/7", 200, "delete 7"),
        ("GET", "/user/me", 200, "me none"),
        ("DELETE", "/user/me", 405, "Method Not Allowed\n"),
        ("GET", "/user/mee", 200, "user mee none"),
        ("GET", "/user/7/post/8", 200, "post 7 8"),
        ("GET", "/user/me/post/8", 200, "post me 8"),
        ("GET", "/1/2/3/4/5", 200, "five 1 2 3 4 5"),
        ("GET", "/files/a", 200, "files a"),
        ("GET", "/files/a/b/", 200, "files a/b/"),
        ("GET", "/files//", 200, "files /"),
        ("GET", "/image-12.png", 200, "image 12"),
        ("GET", "/{literal}", 200, "literal"),
        ("GET", "/other/fixed", 200, "other fixed"),
        ("GET", "/other/fixed/x", 200, "fixed x"),
        ("GET", "/other/fixes/x", 404, "Not Found\n"),
        ("GET", "/user", 404, "Not Found\n"),
        ("GET", "/user/", 404, "Not Found\n"),
        ("GET", "/user/7/", 404, "Not Found\n"),
        ("GET", "/user//post/8", 404, "Not Found\n"),
        ("GET", "/files/", 404, "Not Found\n"),
        ("GET", "/files", 404, "Not Found\n"),
        ("GET", "/image-12.jpg", 404, "Not Found\n"),
        ("GET", "/{{literal}}", 404, "Not Found\n"),
        ("PUT", "/user/7", 405, "Method Not Allowed\n"),
    ] {
        let response = client.request(method, &testkit::tls::target(target), &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
}

#[test]
fn patterns_have_methods() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, allowed) in [
        ("PUT", "/user/7", 405, "GET, DELETE, HEAD, OPTIONS"),
        ("OPTIONS", "/user/7", 204, "GET, DELETE, HEAD, OPTIONS"),
        ("TRACE", "/files/a", 405, "GET, HEAD, OPTIONS"),
    ] {
        let response = client.request(method, &testkit::tls::target(target), &[]);
        assert_eq!((response.status, response.field("Allow")), (status, Some(allowed)), "{method} {target}");
    }
    let head = client.request("HEAD", "/user/7", &[]);
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("11")));
}

const UNDECODABLE: &str = "the parameter \"name\": not percent-encoded UTF-8\n";

#[test]
fn decodes_parameters_once() {
    let app = App::new()
        .route("/{name}", get(|request: &Request| request.param::<String>("name")))
        .route("/a/{name}", get(|request: &Request| request.param_raw("other").map_or("none", |_| "some")));
    let served = Served::app(app);
    let mut client = served.connect();
    for (target, status, body) in [
        ("/plain", 200, "plain"),
        ("/a%20b", 200, "a b"),
        ("/%C3%BC", 200, "ü"),
        ("/%2525", 200, "%25"),
        ("/a%2Fb", 200, "a/b"),
        ("/a+b", 200, "a+b"),
        ("/%zz", 400, UNDECODABLE),
        ("/%", 400, UNDECODABLE),
        ("/%FF", 400, UNDECODABLE),
        ("/a/x", 200, "none"),
    ] {
        let response = client.get(target);
        assert_eq!((response.status, response.text()), (status, body), "{target}");
    }
}

#[test]
fn patterns_choose_how_to_take_bodies() {
    let app = App::new()
        .route(
            "/kept/{name}",
            post(buffered(8, |request: &Request, body: &[u8], response: &mut Response| {
                response.text(request.param_raw("name").unwrap_or("none")).body(body);
            })),
        )
        .route(
            "/counted/{name}",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                let len = call.read_to_end(100).await.expect("it is short").len();
                let text = format!("{} {len}", call.param_raw("name").unwrap_or("none"));
                call.response().text(&text);
            })),
        );
    let served = Served::app(app);
    let post = |path: &str, body: &str| {
        let response = served.connect().send_body("POST", path, &[], body.as_bytes());
        (response.status, response.text().to_owned())
    };
    assert_eq!(post("/kept/a", "12345678"), (200, "12345678".to_owned()));
    assert_eq!(post("/kept/a", "123456789").0, 413);
    assert_eq!(post("/counted/a", "123456789"), (200, "a 9".to_owned()));
}

#[test]
fn fast_routes_fall_through_to_patterns_and_fallbacks() {
    let fast = || Fast::text("fast");
    let app = App::new()
        .route("/x/both", get(fast()))
        .route("/x/both", post(show("route", &[])))
        .route("/x/one", get(fast()))
        .route("/x/{name}", on(Method::Put, show("pattern", &["name"])))
        .route("/y/one", get(fast()))
        .scope("/y", |app| app.fallback(show("fallback", &[])))
        .route("/z", get(fast()));
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status, body, allow) in [
        ("GET", "/x/both", 200, "fast", None),
        ("POST", "/x/both", 200, "route", None),
        ("PUT", "/x/both", 405, "Method Not Allowed\n", Some("GET, POST, HEAD, OPTIONS")),
        ("GET", "/x/one", 200, "fast", None),
        ("PUT", "/x/one", 200, "pattern one", None),
        ("POST", "/x/one", 405, "Method Not Allowed\n", Some("GET, PUT, HEAD, OPTIONS")),
        ("PUT", "/x/two", 200, "pattern two", None),
        ("GET", "/x/two", 405, "Method Not Allowed\n", Some("PUT, OPTIONS")),
        ("GET", "/y/one", 200, "fast", None),
        ("POST", "/y/one", 200, "fallback", None),
        ("OPTIONS", "/y/one", 200, "fallback", None),
        ("GET", "/z", 200, "fast", None),
        ("POST", "/z", 405, "Method Not Allowed\n", Some("GET, HEAD, OPTIONS")),
        ("OPTIONS", "/z", 204, "", Some("GET, HEAD, OPTIONS")),
        ("GET", "/z/", 404, "Not Found\n", None),
    ] {
        let response = client.request(method, &testkit::tls::target(target), &[]);
        let responded = (response.status, response.text(), response.field("Allow"));
        assert_eq!(responded, (status, body, allow), "{method} {target}");
    }
}

/// Responds with its request and a counter.
#[derive(Default)]
struct Show(Cell<u32>);

impl Service for Show {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match head.query() {
            Some("read") => BodyPolicy::Call,
            Some("buffer") => BodyPolicy::Buffer { bytes_max: 3 },
            _ => BodyPolicy::Discard,
        }
    }

    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.0.set(self.0.get() + 1);
        if request.query() == Some("read") {
            return response.defer(request, async |mut call| {
                let body = call.read_to_end(10).await.expect("it is short");
                let text = format!("read {}|{}", call.path(), String::from_utf8_lossy(&body));
                call.response().text(&text);
            });
        }
        let body = String::from_utf8_lossy(request.kept_body().unwrap_or_default());
        response.text(&format!("{}|{}|{}|{body}", request.mount(), request.path(), request.head().path()));
    }
}

fn mounted() -> App {
    App::new()
        .mount("/a", |_| Show::default())
        .scope("/s", |app| app.mount("/t/", |_| Show::default()))
        .route("/a/route", get(text("route")))
        .route("/a/{x}/y", get(text("pattern")))
        .scope("/a/inner", |app| app.fallback(text("fallback")))
}

#[test]
fn mounts_paths_without_a_route() {
    let served = Served::app(mounted());
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/a", 200, "/a||/a|"),
        ("GET", "/a/", 200, "/a|/|/a/|"),
        ("GET", "/a/b/c?d", 200, "/a|/b/c|/a/b/c|"),
        ("BREW", "/a/b", 200, "/a|/b|/a/b|"),
        ("OPTIONS", "/a/b", 200, "/a|/b|/a/b|"),
        ("GET", "/a//b", 200, "/a|//b|/a//b|"),
        ("GET", "http://localhost/a/b", 200, "/a|/b|/a/b|"),
        ("GET", "/s/t/u", 200, "/s/t|/u|/s/t/u|"),
        ("GET", "/a/route", 200, "route"),
        ("POST", "/a/route", 405, "Method Not Allowed\n"),
        ("GET", "/a/x/y", 200, "pattern"),
        ("GET", "/a/inner/x", 200, "fallback"),
        ("GET", "/ab", 404, "Not Found\n"),
        ("GET", "/%61/b", 404, "Not Found\n"),
        ("GET", "/s", 404, "Not Found\n"),
        ("OPTIONS", "*", 204, ""),
    ] {
        let response = client.request(method, &testkit::tls::target(target), &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
}

#[test]
fn mounts_the_root() {
    let app = App::new().mount("/", |_| Show::default()).route("/{x}", get(text("pattern")));
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, body) in [
        ("GET", "/", "|/|/|"),
        ("GET", "/a", "pattern"),
        ("GET", "/a/b", "|/a/b|/a/b|"),
        ("OPTIONS", "*", "|*|*|"),
    ] {
        assert_eq!(client.request(method, target, &[]).text(), body, "{method} {target}");
    }
}

#[test]
fn mounted_services_choose_how_to_take_bodies() {
    let served = Served::app(mounted());
    let post = |target: &str, body: &str| {
        let response = served.connect().send_body("POST", target, &[], body.as_bytes());
        (response.status, response.text().to_owned())
    };
    assert_eq!(post("/a/b", "xyz"), (200, "/a|/b|/a/b|".to_owned()));
    assert_eq!(post("/a/b?buffer", "xyz"), (200, "/a|/b|/a/b|xyz".to_owned()));
    assert_eq!(post("/a/b?buffer", "wxyz").0, 413);
    assert_eq!(post("/a/b?read", "xyz"), (200, "read /b|xyz".to_owned()));
}

#[test]
fn routes_serve_within_another_service() {
    struct Within(shearwater::RoutesService);
    impl Service for Within {
        fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
            self.0.body_policy(head)
        }

        fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
            self.0.respond(request, response.field("X-Within", "yes"));
        }
    }
    let routes = mounted().build().expect("nothing is wrong");
    let running =
        crate::served::here().start_service(move |worker| Within(routes.service(worker))).expect("starts");
    let served = Served::running(running);
    let response = served.connect().get("/a/route");
    assert_eq!((response.text(), response.field("X-Within")), ("route", Some("yes")));
}

#[test]
fn mounts_everything_beside_exact_routes() {
    let app = App::new().mount("/", |_| Show::default()).route("/exact", get(text("exact")));
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/a", 200, "|/a|/a|"),
        ("OPTIONS", "*", 200, "|*|*|"),
        ("GET", "/exact", 200, "exact"),
        ("POST", "/exact", 405, "Method Not Allowed\n"),
    ] {
        let response = client.request(method, &testkit::tls::target(target), &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
    assert_eq!(client.send_body("POST", "/a?read", &[], b"xyz").text(), "read /a|xyz");
}
