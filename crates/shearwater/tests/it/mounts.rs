//! Mounted services, one per worker.

use std::cell::Cell;

use shearwater::{App, BodyPolicy, Head, Request, Response, Service};

use crate::served::Served;

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

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
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

fn app() -> App {
    let mut app = App::new();
    app.mount("/a", |_| Show::default());
    app.scope("/s", |app| {
        app.mount("/t/", |_| Show::default());
    });
    app.get("/a/route", |_: &Request, response: &mut Response| {
        response.text("route");
    });
    app.get("/a/{x}/y", |_: &Request, response: &mut Response| {
        response.text("pattern");
    });
    app.scope("/a/inner", |app| {
        app.fallback(|_: &Request, response: &mut Response| {
            response.text("fallback");
        });
    });
    app
}

#[test]
fn a_mount_responses_what_lies_beneath_and_has_no_route() {
    let served = Served::app(app());
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
        let response = client.request(method, target, &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
}

#[test]
fn the_root_takes_everything_else() {
    let mut app = App::new();
    app.mount("/", |_| Show::default());
    app.get("/{x}", |_: &Request, response: &mut Response| {
        response.text("pattern");
    });
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
fn bodies_go_where_the_mounted_service_says() {
    let served = Served::app(app());
    let post = |target: &str, body: &str| {
        let mut client = served.connect();
        client.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
        let response = client.send(body).response("POST");
        (response.status, response.text().to_owned())
    };
    assert_eq!(post("/a/b", "xyz"), (200, "/a|/b|/a/b|".to_owned()));
    assert_eq!(post("/a/b?buffer", "xyz"), (200, "/a|/b|/a/b|xyz".to_owned()));
    assert_eq!(post("/a/b?buffer", "wxyz").0, 413);
    assert_eq!(post("/a/b?read", "xyz"), (200, "read /b|xyz".to_owned()));
}

#[test]
fn checked_routes_serve_within_a_service_of_the_program() {
    struct Within(shearwater::RoutesService);
    impl Service for Within {
        fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
            self.0.body_policy(head)
        }

        fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
            self.0.respond(request, response.field("X-Within", "yes"));
        }
    }
    let routes = app().build().expect("nothing is wrong");
    let running = crate::served::here().start(move |worker| Within(routes.service(worker))).expect("starts");
    let served = Served::running(running);
    let response = served.connect().request("GET", "/a/route", &[]);
    assert_eq!((response.text(), response.field("X-Within")), ("route", Some("yes")));
}

#[test]
fn a_mount_of_everything_responses_as_one_among_others() {
    let mut app = App::new();
    app.mount("/", |_| Show::default());
    app.get("/exact", |_: &Request, response: &mut Response| {
        response.text("exact");
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (method, target, status, body) in [
        ("GET", "/a", 200, "|/a|/a|"),
        ("OPTIONS", "*", 200, "|*|*|"),
        ("GET", "/exact", 200, "exact"),
        ("POST", "/exact", 405, "Method Not Allowed\n"),
    ] {
        let response = client.request(method, target, &[]);
        assert_eq!((response.status, response.text()), (status, body), "{method} {target}");
    }
    client.send("POST /a?read HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz");
    assert_eq!(client.response("POST").text(), "read /a|xyz");
}
