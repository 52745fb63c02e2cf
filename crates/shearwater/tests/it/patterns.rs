//! Routes with parameters: matching, parameter values, precedence.

use shearwater::{App, Call, Fast, Method, Request, Response};

use crate::served::Served;

/// Responds with a name and the values of these parameters.
fn show(
    name: &'static str,
    params: &'static [&'static str],
) -> impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync {
    move |request, response| {
        let shown = params.iter().map(|param| request.param(param).unwrap_or("none"));
        response.text(&[name].into_iter().chain(shown).collect::<Vec<_>>().join(" "));
    }
}

fn app() -> App {
    let mut app = App::new();
    app.get("/user/{id}", show("user", &["id", "other"]));
    app.delete("/user/{id}", show("delete", &["id"]));
    app.get("/user/me", show("me", &["id"]));
    app.get("/user/{id}/post/{post}", show("post", &["id", "post"]));
    app.get("/{a}/{b}/{c}/{d}/{e}", show("five", &["a", "b", "c", "d", "e"]));
    app.get("/files/{*rest}", show("files", &["rest"]));
    app.get("/image-{number}.png", show("image", &["number"]));
    app.get("/{{literal}}", show("literal", &[]));
    app.get("/other/{name}", show("other", &["name"]));
    app.get("/other/fixed/{name}", show("fixed", &["name"]));
    app
}

#[test]
fn a_request_finds_its_pattern() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/user/7", 200, "user 7 none"),
        ("GET", "/user/7?id=8", 200, "user 7 none"),
        ("GET", "http://localhost/user/7", 200, "user 7 none"),
        ("GET", "/user/a%20b", 200, "user a%20b none"),
        ("GET", "/user/..", 200, "user .. none"),
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
        let response = client.request(method, target, &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
}

#[test]
fn a_pattern_has_methods_as_a_path_has() {
    let served = Served::app(app());
    let mut client = served.connect();
    for (method, target, status, allowed) in [
        ("PUT", "/user/7", 405, "GET, DELETE, HEAD, OPTIONS"),
        ("OPTIONS", "/user/7", 204, "GET, DELETE, HEAD, OPTIONS"),
        ("TRACE", "/files/a", 405, "GET, HEAD, OPTIONS"),
    ] {
        let response = client.request(method, target, &[]);
        assert_eq!((response.status, response.field("Allow")), (status, Some(allowed)), "{method} {target}");
    }
    let head = client.request("HEAD", "/user/7", &[]);
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("11")));
}

#[test]
fn parameters_are_decoded_once_on_demand() {
    let mut app = App::new();
    app.get("/{name}", |request: &Request, response: &mut Response| {
        match request.param_decoded("name") {
            Some(name) => response.text(&name),
            None => response.status(400),
        };
    });
    app.get("/a/{name}", |request: &Request, response: &mut Response| {
        response.text(request.param_decoded("other").map_or("none", |_| "some"));
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (target, status, body) in [
        ("/plain", 200, "plain"),
        ("/a%20b", 200, "a b"),
        ("/%C3%BC", 200, "ü"),
        ("/%2525", 200, "%25"),
        ("/a%2Fb", 200, "a/b"),
        ("/a+b", 200, "a+b"),
        ("/%zz", 400, ""),
        ("/%", 400, ""),
        ("/%FF", 400, ""),
        ("/a/x", 200, "none"),
    ] {
        let response = client.request("GET", target, &[]);
        assert_eq!((response.status, response.text()), (status, body), "{target}");
    }
}

#[test]
fn bodies_go_where_the_route_of_the_pattern_says() {
    let mut app = App::new();
    app.post("/kept/{name}", |request: &Request, response: &mut Response| {
        response.text(request.param("name").unwrap_or("none")).body(request.body());
    })
    .buffer(8);
    app.post_async("/counted/{name}", async |call: &mut Call| {
        let len = call.read_to_end(100).await.expect("it is short").len();
        let text = format!("{} {len}", call.param("name").unwrap_or("none"));
        call.response().text(&text);
    })
    .read();
    let served = Served::app(app);
    let post = |path: &str, body: &str| {
        let mut client = served.connect();
        client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
        let response = client.send(body).response("POST");
        (response.status, response.text().to_owned())
    };
    assert_eq!(post("/kept/a", "12345678"), (200, "12345678".to_owned()));
    assert_eq!(post("/kept/a", "123456789").0, 413);
    assert_eq!(post("/counted/a", "123456789"), (200, "a 9".to_owned()));
}

#[test]
fn what_a_fast_route_leaves_goes_on_to_patterns_then_to_fallbacks() {
    let fast = || Fast::text("fast");
    let mut app = App::new();
    app.fast("/x/both", fast());
    app.post("/x/both", show("route", &[]));
    app.fast("/x/one", fast());
    app.route(Method::Put, "/x/{name}", show("pattern", &["name"]));
    app.fast("/y/one", fast());
    app.scope("/y", |app| {
        app.fallback(show("fallback", &[]));
    });
    app.fast("/z", fast());
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status, body, allow) in [
        ("GET", "/x/both", 200, "fast", None),
        ("POST", "/x/both", 200, "route", None),
        ("PUT", "/x/both", 405, "Method Not Allowed\n", Some("POST, GET, HEAD, OPTIONS")),
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
        let response = client.request(method, target, &[]);
        let responded = (response.status, response.text(), response.field("Allow"));
        assert_eq!(responded, (status, body, allow), "{method} {target}");
    }
}
