//! Mistakes in the options, each with its key and message.

use std::time::Duration;

use shearwater_files::{CacheLimits, FindOptions, Folder, FolderOptions};
use shearwater_site::limits::{FIXED_BYTES_MAX, MISTAKES_MAX, REDIRECTS_FOLLOWED_MAX, ROUTES_MAX, SITES_MAX};
use shearwater_site::{Content, Fixed, Headers, Hsts, Mistakes, Options, Route, Site, Sites};

use crate::served::{fixed, headers, hosts, page, redirect, route, says, site};

fn checked(sites: Vec<Site>) -> Result<Sites, Mistakes> {
    let folders = vec![Folder::open(&std::env::temp_dir()).expect("a folder")];
    Sites::new(Options { folders, cache: CacheLimits::default(), sites })
}

/// Returns the mistakes as lines of key and message, without help.
fn mistakes(sites: Vec<Site>) -> Vec<String> {
    let mistakes = checked(sites).expect_err("a mistake");
    mistakes.list.iter().map(|mistake| format!("{}: {}", mistake.key, mistake.message)).collect()
}

#[test]
fn rejects_duplicates_and_contradictions() {
    let named = |names: &[&str]| Site { hosts: hosts(names), ..site() };
    let with_routes = |routes| Site { routes, ..site() };
    let redirects = vec![redirect("/a", "/c", 308), redirect("/%61", "/d", 308)];
    let pages = vec![page(404, "/a"), page(404, "/b")];
    for (sites, expected) in [
        (
            vec![named(&["a.example"]), named(&["b.example", "A.example."])],
            "site[1].hosts[1]: duplicate host name",
        ),
        (vec![named(&["*.a.example", "*.A.example"])], "site[0].hosts[1]: duplicate host name"),
        (vec![named(&["a.example"]), site(), site()], "site[2]: second site without `hosts`"),
        (
            vec![with_routes(vec![route("/a/*"), route("/b"), route("/%61/*")])],
            "site[0].route[2].path: duplicate path",
        ),
        (vec![Site { redirects, ..site() }], "site[0].redirect[1].from: duplicate path"),
        (
            vec![with_routes(vec![Route { strip_prefix: true, ..route("/a") }])],
            "site[0].route[0].strip_prefix: path is not a prefix",
        ),
        (
            vec![Site { headers: headers(&[("X-A", "1")], &["x-a"]), ..site() }],
            "site[0].headers.remove[0]: header is changed twice",
        ),
        (vec![Site { error_pages: pages, ..site() }], "site[0].error_pages.404: duplicate error page"),
    ] {
        assert_eq!(mistakes(sites), [expected]);
    }
    let errors = checked(vec![with_routes(vec![route("/a/*"), route("/%61/*")])]).expect_err("a duplicate");
    assert_eq!(errors.to_string(), "site[0].route[1].path: duplicate path (site[0].route[0] has it already)");
}

#[test]
fn rejects_contradictions_of_hsts() {
    let hsts =
        |days: u64, preload| Hsts { max_age: Duration::from_secs(days * 86_400), subdomains: true, preload };
    let own = headers(&[("strict-transport-security", "max-age=1")], &[]);
    let removed = headers(&[], &["Strict-Transport-Security"]);
    for (sites, expected) in [
        (
            vec![Site { hsts: Some(hsts(300, true)), ..site() }],
            "site[0].hsts: `preload` with less than a year",
        ),
        (
            vec![Site { hsts: Some(hsts(300, false)), headers: own.clone(), ..site() }],
            "site[0].headers: both `hsts` and the header Strict-Transport-Security",
        ),
        (
            vec![Site {
                hsts: Some(hsts(300, false)),
                routes: vec![Route { headers: removed, ..route("/a") }],
                ..site()
            }],
            "site[0].route[0].headers: both `hsts` and the header Strict-Transport-Security",
        ),
    ] {
        assert_eq!(mistakes(sites), [expected]);
    }
    checked(vec![Site { headers: own, ..site() }]).expect("without `hsts` the header is the operator's");
}

#[test]
fn rejects_invalid_values() {
    let of = |content: Content| {
        vec![Site { routes: vec![Route { content: Some(content), ..route("/a") }], ..site() }]
    };
    let typed = |media_type: &str| {
        of(Content::Fixed(Fixed { status: 200, media_type: media_type.to_owned(), body: Vec::new() }))
    };
    let redirected = |from: &str, to: &str| vec![Site { redirects: vec![redirect(from, to, 308)], ..site() }];
    let paged = |status, path: &str| {
        let routes = vec![says("/fixed/*", "x")];
        let redirects = vec![redirect("/moved/*", "/x", 308)];
        vec![Site { error_pages: vec![page(status, path)], routes, redirects, ..site() }]
    };
    let set = |name: &str, value: &str| {
        let own = Route { headers: headers(&[(name, value)], &[]), ..route("/r") };
        vec![Site { routes: vec![own], hosts: hosts(&["h.example"]), ..site() }]
    };
    let status = "site[0].route[0].respond.status: status can't be used for a fixed response";
    for (sites, expected) in [
        (vec![], "site: expected 1 to 65536 sites"),
        (vec![Site { hosts: hosts(&["a:80"]), ..site() }], "site[0].hosts[0]: host name with a port"),
        (vec![Site { content: Content::Files(3), ..site() }], "site[0]: there is no folder 3"),
        (of(Content::Files(1)), "site[0].route[0]: there is no folder 1"),
        (
            of(fixed(200, &"x".repeat(FIXED_BYTES_MAX + 1))),
            "site[0].route[0].respond.body: body is larger than 65536 bytes",
        ),
        (typed("text"), "site[0].route[0].respond.type: invalid media type"),
        (typed("a/b\r\nX: y"), "site[0].route[0].respond.type: invalid media type"),
        (of(fixed(301, "")), status),
        (of(fixed(206, "")), status),
        (of(fixed(204, "x")), status),
        (of(fixed(100, "")), status),
        (of(fixed(600, "")), status),
        (
            vec![Site { routes: vec![route("a")], ..site() }],
            "site[0].route[0].path: path doesn't start with `/`",
        ),
        (redirected("/a", "//evil.example"), "site[0].redirect[0].to: invalid redirect target"),
        (redirected("/a", "/b/{rest}"), "site[0].redirect[0].to: {rest} without a * in `from`"),
        (redirected("/a*", "/b"), "site[0].redirect[0].from: misplaced `*` in a path"),
        (redirected("/a", "/a"), "site[0].redirect[0].to: redirect loop"),
        (redirected("/a/*", "/a/b/{rest}"), "site[0].redirect[0].to: redirect loop"),
        (redirected("/*", "/index.html"), "site[0].redirect[0].to: redirect loop"),
        (paged(200, "/a"), "site[0].error_pages.200: status is not an error"),
        (paged(404, "a.html"), "site[0].error_pages.404: invalid path of an error page"),
        (paged(404, "/a?b"), "site[0].error_pages.404: invalid path of an error page"),
        (paged(404, "/../a"), "site[0].error_pages.404: path with . or .. in it"),
        (paged(404, "/errors/"), "site[0].error_pages.404: path of an error page is not a file"),
        (paged(404, "/%ff"), "site[0].error_pages.404: path of an error page is not a file"),
        (paged(404, "/fixed/a"), "site[0].error_pages.404: no files are served at the path of an error page"),
        (paged(404, "/moved/a"), "site[0].error_pages.404: path of an error page is redirected"),
        (set("Content-Length", "1"), "site[0].route[0].headers.set.Content-Length: header can't be set"),
        (set("date", "x"), "site[0].route[0].headers.set.date: header can't be set"),
        (set("X", "a\r\nb"), "site[0].route[0].headers.set.X: invalid header value"),
    ] {
        assert_eq!(mistakes(sites), [expected]);
    }
    let circle = vec![redirect("/a", "/b", 308), redirect("/b", "/c", 308), redirect("/c", "/a", 308)];
    assert_eq!(mistakes(vec![Site { redirects: circle, ..site() }]).len(), 3);
    let chain =
        vec![redirect("/a", "/b", 308), redirect("/b/*", "/c/{rest}", 308), redirect("/c/*", "/{rest}", 308)];
    assert!(checked(vec![Site { redirects: chain, ..site() }]).is_ok());
}

#[test]
fn a_401_requires_its_header_from_the_route_or_the_site() {
    let basic = headers(&[("WWW-Authenticate", "Basic realm=\"a\"")], &[]);
    let closed = |own: Headers| Route { content: Some(fixed(401, "")), headers: own, ..route("/a") };
    let is_valid = |of_site: &Headers, of_route: &Headers| {
        let (headers, routes) = (of_site.clone(), vec![closed(of_route.clone())]);
        checked(vec![Site { headers, routes, ..site() }]).is_ok()
    };
    for (status, header) in [(401, "WWW-Authenticate"), (407, "Proxy-Authenticate")] {
        let expected = format!("site[0].respond.status: status {status} requires the header {header}");
        assert_eq!(mistakes(vec![Site { content: fixed(status, ""), ..site() }]), [expected]);
    }
    let (none, removed) = (Headers::default(), headers(&[], &["www-authenticate"]));
    assert_eq!(
        [
            is_valid(&basic, &none),
            is_valid(&none, &basic),
            is_valid(&none, &none),
            is_valid(&basic, &removed)
        ],
        [true, true, false, false]
    );
}

/// With `clean_urls`, files redirect as well. Only names count, since files may be added later.
#[test]
fn detects_loops_of_redirects_and_files() {
    let is_loop = |clean_urls: bool, from: &str, to: &str| {
        let find = FindOptions { clean_urls, ..FindOptions::default() };
        let options = FolderOptions { find, ..FolderOptions::default() };
        let folders = vec![Folder::open_with(&std::env::temp_dir(), &options).expect("a folder")];
        let sites = vec![Site { redirects: vec![redirect(from, to, 308)], ..site() }];
        let checked = Sites::new(Options { folders, cache: CacheLimits::default(), sites });
        checked.err().is_some_and(|mistakes| mistakes.list[0].message == "redirect loop")
    };
    for (from, to) in [
        ("/about", "/about.html"),
        ("/about", "/about.html?x#y"),
        ("/caf%c3%a9", "/caf%C3%A9.html"),
        ("/about/*", "/about.html"),
        ("/docs/", "/docs/index.html"),
        ("/", "/index.html"),
    ] {
        assert!(is_loop(true, from, to) && !is_loop(false, from, to), "{from} {to}");
    }
    for (from, to) in [
        ("/about", "/other.html"),
        ("/about.html", "/about"),
        ("/x/*", "/y/{rest}.html"),
        ("/docs/", "/docs"),
    ] {
        assert!(!is_loop(true, from, to), "{from} {to}");
    }
}

#[test]
fn follows_16_redirects_to_detect_loops() {
    let circle = |len: usize| -> Vec<_> {
        (0..len).map(|at| redirect(&format!("/{at}"), &format!("/{}", (at + 1) % len), 308)).collect()
    };
    let count =
        |len| checked(vec![Site { redirects: circle(len), ..site() }]).err().map(|all| all.list.len());
    assert_eq!(count(REDIRECTS_FOLLOWED_MAX), Some(REDIRECTS_FOLLOWED_MAX));
    assert_eq!(count(REDIRECTS_FOLLOWED_MAX + 1), None);
}

#[test]
fn reports_50_mistakes_and_counts_the_rest() {
    let routes = vec![route("wrong"); MISTAKES_MAX + 7];
    let mistakes = checked(vec![Site { routes, ..site() }]).expect_err("mistakes");
    assert_eq!((mistakes.list.len(), mistakes.left_out), (MISTAKES_MAX, 7));
    assert!(mistakes.to_string().ends_with("\nand 7 more"));
}

#[test]
fn limits_sites_and_routes() {
    let named = |number: usize| Site { hosts: vec![format!("h{number}")], ..site() };
    assert!(checked((0..1_000).map(named).collect()).is_ok());
    assert_eq!(mistakes((0..=SITES_MAX).map(named).collect()), ["site: expected 1 to 65536 sites"]);
    let many = |count: usize| (0..count).map(|number| route(&format!("/{number}/*"))).collect();
    let redirects = vec![redirect("/a", "/b", 308)];
    let with = |routes| vec![Site { redirects: redirects.clone(), routes, ..site() }];
    assert!(checked(with(many(ROUTES_MAX - 1))).is_ok());
    assert_eq!(mistakes(with(many(ROUTES_MAX))), ["site[0]: site with more than 65536 routes and redirects"]);
}
