//! Routes: the most specific one wins.

use shearwater_site::{Content, Route, Site};

use crate::served::{on_each_driver, route, says, site};

#[test]
fn an_exact_path_wins_then_the_longest_prefix() {
    let routes = vec![
        says("/docs/*", "docs"),
        says("/docs/old/*", "old"),
        says("/docs/old", "exact"),
        says("/docs/old/x/y/z/*", "deep"),
        says("/", "root"),
        says("/caf%C3%A9/*", "caf\u{e9}"),
    ];
    on_each_driver(
        &[("one/index.html", "index"), ("one/f.txt", "file")],
        &[Site { routes, ..site() }],
        |served| {
            for (target, text) in [
                ("/", "root"),
                ("//", "root"),
                ("/?a=/docs/x", "root"),
                ("/f.txt", "file"),
                ("/index.html", "index"),
                ("/docs", "docs"),
                ("/docs/", "docs"),
                ("/docs/a/b?c", "docs"),
                ("/docs/older", "docs"),
                ("/docs/old", "exact"),
                ("/docs/old?q", "exact"),
                ("/docs/%6fld", "exact"),
                ("/docs/old/", "old"),
                ("/docs/old/x/y/z", "deep"),
                ("/docs/old/x/y/zz", "old"),
                ("/docs/old/x/y/z/1/2", "deep"),
                ("/caf%c3%a9/x", "caf\u{e9}"),
            ] {
                for _ in 0..2 {
                    let response = served.get(target, &[]);
                    assert_eq!((response.status, response.text()), (200, text), "{target}");
                }
            }
            assert_eq!(served.get("/doc", &[]).status, 404);
            assert_eq!(served.get("/DOCS/", &[]).status, 404);
        },
    );
}

#[test]
fn a_route_looks_up_the_whole_path_in_its_own_folder() {
    let other = Route { content: Some(Content::Files(1)), ..route("/assets/*") };
    let files = [("one/assets/a", "one"), ("two/assets/a", "two"), ("two/b", "two"), ("one/b", "one")];
    on_each_driver(&files, &[Site { routes: vec![other], ..site() }], |served| {
        assert_eq!(served.get("/assets/a", &[]).text(), "two");
        assert_eq!(served.get("/b", &[]).text(), "one");
        assert_eq!(served.get("/assets", &[]).field("Location"), Some("/assets/"));
    });
}

#[test]
fn a_site_without_content_has_only_its_routes() {
    let site = Site { routes: vec![says("/a", "a")], ..Site::default() };
    on_each_driver(&[], &[site], |served| {
        assert_eq!(served.get("/a", &[]).text(), "a");
        assert_eq!(served.get("/b", &[]).status, 404);
        assert_eq!(served.get("/%zz", &[]).status, 400);
        assert_eq!(served.get("/a/../a", &[]).status, 400);
        assert_eq!(served.get("/a%2fb", &[]).status, 404);
        let options = served.connect().request("OPTIONS", "*", &[]);
        assert_eq!((options.status, options.field("Allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!(served.connect().request("OPTIONS", "/b", &[]).status, 404);
    });
}
