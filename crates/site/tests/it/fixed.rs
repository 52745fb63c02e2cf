//! Fixed responses and their methods.

use shearwater_site::{Content, Fixed, Route, Site};

use crate::served::{fixed, on_each_driver, page, route, site};

fn responding(path: &str, content: Content) -> Route {
    Route { content: Some(content), ..route(path) }
}

fn sites() -> Vec<Site> {
    let json =
        Fixed { status: 200, media_type: "application/json".to_owned(), body: b"{\"up\":true}".into() };
    let routes = vec![
        responding("/health", Content::Fixed(json)),
        responding("/nothing", fixed(204, "")),
        responding("/gone/*", fixed(410, "it was here\n")),
        responding("/closed/*", fixed(403, "")),
        responding("/teapot", fixed(418, "")),
        responding("/odd", fixed(299, "odd")),
        responding("/large", fixed(200, &"x".repeat(40_000))),
    ];
    vec![Site { routes, error_pages: vec![page(410, "/410.html"), page(403, "/403.html")], ..site() }]
}

#[test]
fn sends_status_type_and_body() {
    on_each_driver(&[("one/403.html", "closed")], &sites(), |served| {
        let health = served.get("/health?x", &[]);
        assert_eq!((health.status, health.text()), (200, "{\"up\":true}"));
        assert_eq!(health.field("Content-Type"), Some("application/json"));
        assert_eq!(served.get("/nothing", &[]).status, 204);
        assert_eq!(served.get("/odd", &[]).status, 299);
        assert_eq!(served.get("/large", &[]).body.len(), 40_000);
        let head = served.connect().request("HEAD", "/health", &[]);
        assert_eq!((head.status, head.field("Content-Length")), (200, Some("11")));
    });
}

#[test]
fn fixed_responses_allow_get_head_and_options() {
    on_each_driver(&[], &sites(), |served| {
        let mut client = served.connect();
        for method in ["POST", "PUT", "DELETE", "BREW"] {
            let response =
                client.ask(method, "/health", &["Content-Length: 4"]).send("body").response(method);
            let form = if method == "BREW" { (501, None) } else { (405, Some("GET, HEAD, OPTIONS")) };
            assert_eq!((response.status, response.field("Allow")), form, "{method}");
        }
        let response = client.request("OPTIONS", "/health", &[]);
        assert_eq!((response.status, response.field("Allow")), (204, Some("GET, HEAD, OPTIONS")));
    });
}

#[test]
fn fixed_errors_apply_to_every_method_and_keep_their_body() {
    on_each_driver(&[("one/403.html", "closed"), ("one/410.html", "page")], &sites(), |served| {
        let mut client = served.connect();
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let response = client.request(method, "/gone/a", &[]);
            assert_eq!((response.status, response.text()), (410, "it was here\n"), "{method}");
            let response = client.request(method, "/closed/a", &[]);
            assert_eq!((response.status, response.text()), (403, "closed"), "{method}");
        }
        assert_eq!(client.request("GET", "/teapot", &[]).text(), "Error\n");
    });
}
