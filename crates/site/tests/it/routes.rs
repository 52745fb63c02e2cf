//! Routes: the most specific one wins, as in a linear search, and no spelling of a path avoids its route.

use shearwater_site::routes::RouteTable;
use shearwater_site::{Content, Route, Site};
use testkit::random::{self, Rng};
use testkit::tls::target as in_scheme;

use crate::served::{fixed, on_each_driver, page, route, says, site};

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
fn a_route_can_strip_its_prefix() {
    let stripped = |path: &str| Route { content: Some(Content::Files(1)), strip_prefix: true, ..route(path) };
    let mut own = stripped("/own/pages/*");
    own.error_pages = vec![page(404, "/own/pages/404.html")];
    let routes = vec![stripped("/up/*"), stripped("/caf%C3%A9/*"), own];
    let files =
        [("two/a", "two"), ("two/up/a", "below"), ("two/sub/index.html", "sub"), ("two/404.html", "none")];
    on_each_driver(&files, &[Site { routes, ..site() }], |served| {
        for (target, text) in [
            ("/up/a", "two"),
            ("//%75p///a", "two"),
            ("/up/up/a", "below"),
            ("/up/sub/", "sub"),
            ("/caf%c3%a9/a", "two"),
            ("/own/pages/a", "two"),
        ] {
            for _ in 0..2 {
                let response = served.get(target, &[]);
                assert_eq!((response.status, response.text()), (200, text), "{target}");
            }
        }
        for (target, location) in
            [("/up", "/up/"), ("/up/sub?q", "/up/sub/?q"), ("/own/pages", "/own/pages/")]
        {
            assert_eq!(served.get(target, &[]).field("Location"), Some(location), "{target}");
        }
        for (target, status) in
            [("/up/none", 404), ("/upx/a", 404), ("/up/../a", 404), ("/up/%2e%2e/%2e%2e/a", 400)]
        {
            assert_eq!(served.get(target, &[]).status, status, "{target}");
        }
        let missing = served.get("/own/pages/none", &[]);
        assert_eq!((missing.status, missing.text()), (404, "none"));
    });
}

#[test]
fn a_site_without_content_has_only_its_routes() {
    let site = Site { routes: vec![says("/a", "a")], ..Site::default() };
    on_each_driver(&[], &[site], |served| {
        assert_eq!(served.get("/a", &[]).text(), "a");
        assert_eq!(served.get("/b", &[]).status, 404);
        assert_eq!(served.get("/%zz", &[]).status, 404);
        assert_eq!(served.get("/a/../a", &[]).text(), "a");
        assert_eq!(served.get("/a/../../a", &[]).status, 400);
        assert_eq!(served.get("/a%2fb", &[]).status, 404);
        let options = served.connect().request("OPTIONS", "*", &[]);
        assert_eq!((options.status, options.field("Allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!(served.connect().request("OPTIONS", "/b", &[]).status, 404);
    });
}

/// Returns a path of up to `segments` segments, from few names so that many collide.
fn path(random: &mut Rng, segments: usize) -> String {
    const NAMES: [&str; 8] = ["a", "b", "ab", "a b", "%25", "index.html", "long-name-of-a-segment", "b2"];
    let mut path: String =
        (0..random.usize(..=segments)).map(|_| format!("/{}", NAMES[random.usize(..8)])).collect();
    if path.is_empty() || random.usize(..4) == 0 {
        path.push('/');
    }
    path
}

/// A route, decoded.
struct Given {
    name: String,
    is_beneath: bool,
}

fn name(path: &str) -> String {
    path[1..].replace("%25", "%")
}

/// Returns the expected route: the exact path, or the longest prefix.
fn wanted(given: &[Given], name: &str) -> u32 {
    let exact = given.iter().position(|route| !route.is_beneath && route.name == name);
    let has = |route: &(usize, &Given)| {
        let (_, route) = route;
        let own = route.name.trim_end_matches('/');
        route.is_beneath && (own.is_empty() || name == own || name.starts_with(&format!("{own}/")))
    };
    let longest = given.iter().enumerate().filter(has).max_by_key(|(_, route)| route.name.len());
    exact.or(longest.map(|(at, _)| at)).map_or(u32::MAX - 1, |at| at as u32)
}

#[test]
fn finds_the_same_as_a_linear_search() {
    let mut random = random::part(0x5eed, 0);
    let (mut found, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let mut routes = RouteTable::new(u32::MAX - 1);
        let mut given: Vec<Given> = Vec::new();
        for _ in 0..random.usize(..30) {
            let path = path(&mut random, 4);
            let is_beneath = random.usize(..2) == 0;
            let text = match is_beneath {
                true => format!("{}/*", path.trim_end_matches('/')),
                false => path.clone(),
            };
            let name =
                if is_beneath { name(&format!("{}/", path.trim_end_matches('/'))) } else { name(&path) };
            let is_known = given.iter().any(|route| route.is_beneath == is_beneath && route.name == name);
            let added = routes.add(&text, given.len() as u32);
            assert_eq!(added.is_err(), is_known, "{text}: {added:?}");
            refused += usize::from(is_known);
            if !is_known {
                given.push(Given { name, is_beneath });
            }
        }
        for _ in 0..40 {
            let name = name(&path(&mut random, 6));
            let route = routes.find(name.as_bytes());
            assert_eq!(route, wanted(&given, &name), "{name:?}");
            found += usize::from(route < u32::MAX - 1);
        }
    }
    assert!(found > 20_000 && refused > 1_000, "{found} {refused}");
}

const SECRET: &str = "what is beneath the route";

/// Returns a path in a random spelling: encoded bytes, repeated slashes, dot segments.
fn spelled(random: &mut Rng) -> String {
    const BETWEEN: [&str; 12] =
        ["/", "/", "/", "/", "//", "///", "/./", "/x/../", "/%2e/", "/%2E%2e/", "%2f", "/\\../"];
    let mut path = BETWEEN[random.usize(..BETWEEN.len())].to_owned();
    for segment in ["private", "deep", "secret.txt"] {
        for byte in segment.bytes() {
            match random.usize(..12) {
                0 => path.push_str(&format!("%{byte:02x}")),
                1 => path.push_str(&format!("%{byte:02X}")),
                2 if random.usize(..8) == 0 => path.push_str(&format!("%25{byte:02x}")),
                _ => path.push(char::from(byte)),
            }
        }
        path.push_str(BETWEEN[random.usize(..BETWEEN.len())]);
    }
    if random.usize(..8) > 0 {
        path.truncate(path.trim_end_matches(['/', '.', '\\']).len());
    }
    path
}

fn guarded() -> Site {
    Site { routes: vec![Route { content: Some(fixed(403, "guarded")), ..route("/private/*") }], ..site() }
}

#[test]
fn no_spelling_of_a_path_avoids_its_route() {
    let files = [
        ("one/private/deep/secret.txt", SECRET),
        ("one/private/index.html", SECRET),
        ("one/open.txt", "open"),
    ];
    on_each_driver(&files, &[guarded()], |served| {
        let mut random = random::part(0x5eed, 0);
        let mut seen = [0; 3];
        let mut client = served.connect();
        for _ in 0..3_000 {
            let path = spelled(&mut random);
            if !path.starts_with('/') {
                continue;
            }
            let response = client.request("GET", &path, &[]);
            assert!(!response.text().contains(SECRET), "{path}");
            match response.status {
                403 => seen[0] += 1,
                // The path leaves the root, and the connection is closed.
                400 => {
                    seen[1] += 1;
                    client = served.connect();
                }
                404 => seen[2] += 1,
                status => panic!("{path}: {status}"),
            }
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        for path in
            ["/private", "/private/", "//private", "/%70rivate", "/private//", "http://localhost//private/"]
        {
            assert_eq!(client.request("GET", &in_scheme(path), &[]).status, 403, "{path}");
        }
        for path in [
            "/x/../private/deep/secret.txt",
            "/./private/",
            "/private/../private/",
            "/x/%2E%2e//private/deep/secret.txt",
            "/open.txt/../private/deep/secret.txt",
        ] {
            assert_eq!(client.request("GET", path, &[]).status, 403, "{path}");
        }
        for path in ["/open.txt?/../x", "/private/../open.txt", "/private/%2e%2E/./open.txt"] {
            assert_eq!(client.request("GET", path, &[]).text(), "open", "{path}");
        }
        assert_eq!(client.request("GET", "/open.txt", &[]).text(), "open");
    });
}
