//! What is refused before anything is served, and in which words.

use shearwater_files::{CacheLimits, FindOptions, Folder, FolderOptions};
use shearwater_site::limits::{FIXED_BYTES_MAX, MISTAKES_MAX, REDIRECTS_FOLLOWED_MAX, ROUTES_MAX, SITES_MAX};
use shearwater_site::{Content, Fixed, Headers, Mistakes, Options, Place, Route, Site, Sites};

use crate::served::{fixed, headers, hosts, page, redirect, route, says, site};

fn checked(sites: Vec<Site>) -> Result<Sites, Mistakes> {
    let folders = vec![Folder::open(&std::env::temp_dir()).expect("a folder")];
    Sites::new(Options { folders, cache: CacheLimits::default(), sites })
}

fn mistakes(sites: Vec<Site>) -> Mistakes {
    checked(sites).expect_err("it is refused")
}

/// The one mistake.
#[track_caller]
fn mistake(sites: Vec<Site>) -> (Place, String) {
    let mut mistakes = mistakes(sites);
    assert_eq!(mistakes.told.len(), 1, "{mistakes}");
    let mistake = mistakes.told.remove(0);
    let text = mistake.to_string();
    (mistake.place, text)
}

#[test]
fn what_is_there_twice_is_named_with_what_it_meets() {
    let named = |names: &[&str]| Site { hosts: hosts(names), ..site() };
    for (sites, place, text) in [
        (
            vec![named(&["a.example"]), named(&["b.example", "A.example."])],
            Place::Host { site: 1, host: 1 },
            "site 2, host \"A.example.\": site 1 (a.example) has it already",
        ),
        (
            vec![named(&["*.a.example", "*.A.example"])],
            Place::Host { site: 0, host: 1 },
            "site 1, host \"*.A.example\": this site has it already",
        ),
        (
            vec![named(&["a.example"]), site(), site()],
            Place::Site(2),
            "site 3: it has no hosts, and neither has site 2: one alone can be for all others",
        ),
        (
            vec![Site { routes: vec![route("/a/*"), route("/b"), route("//%61/*")], ..site() }],
            Place::Route { site: 0, route: 2 },
            "site 1, route //%61/*: route /a/* has the same paths",
        ),
        (
            vec![Site { redirects: vec![redirect("/a", "/c", 308), redirect("//a", "/d", 308)], ..site() }],
            Place::Redirect { site: 0, redirect: 1 },
            "site 1, redirect of //a: redirect of /a has the same paths",
        ),
        (
            vec![Site { headers: headers(&[("X-A", "1")], &["x-a"]), ..site() }],
            Place::Header { site: 0, route: None, name: "x-a".to_owned() },
            "site 1, header x-a: it is named twice",
        ),
        (
            vec![Site { error_pages: vec![page(404, "/a"), page(404, "/b")], ..site() }],
            Place::ErrorPage { site: 0, route: None, status: 404 },
            "site 1, error page of 404: it is named twice",
        ),
    ] {
        assert_eq!(mistake(sites), (place, text.to_owned()));
    }
}

#[test]
fn what_can_not_be_is_refused() {
    let of = |content: Content| {
        vec![Site { routes: vec![Route { content: Some(content), ..route("/a") }], ..site() }]
    };
    let long = fixed(200, &"x".repeat(FIXED_BYTES_MAX + 1));
    let untyped = Content::Fixed(Fixed { status: 200, media_type: "text".to_owned(), body: Vec::new() });
    let broken =
        Content::Fixed(Fixed { status: 200, media_type: "a/b\r\nX: y".to_owned(), body: Vec::new() });
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
    for (sites, text) in [
        (vec![], "sites: there is none: nothing would be served"),
        (
            vec![Site { hosts: hosts(&["a:80"]), ..site() }],
            "site 1, host \"a:80\": a host is named without its port",
        ),
        (vec![Site { content: Content::Files(3), ..site() }], "site 1: there is no folder 3"),
        (of(Content::Files(1)), "site 1, route /a: there is no folder 1"),
        (of(long), "site 1, route /a: its body has more than 65536 bytes"),
        (of(untyped), "site 1, route /a: \"text\" is no media type"),
        (of(broken), "site 1, route /a: a handler set the field \"Content-Type\""),
        (of(fixed(301, "")), "site 1, route /a: 301 needs a target"),
        (of(fixed(206, "")), "site 1, route /a: a 206 needs fields"),
        (of(fixed(204, "x")), "site 1, route /a: a 204 has no body"),
        (of(fixed(100, "")), "site 1, route /a: 100 is no status of an answer"),
        (of(fixed(600, "")), "site 1, route /a: 600 is no status of an answer"),
        (
            vec![Site { routes: vec![route("a")], ..site() }],
            "site 1, route a: it does not begin with a slash",
        ),
        (redirected("/a", "//evil.example"), "site 1, redirect of /a: a target begins with one slash"),
        (redirected("/a", "/b/{rest}"), "site 1, redirect of /a: {rest} is what a star stands for"),
        (redirected("/a*", "/b"), "site 1, redirect of /a*: a star stands at the end"),
        (redirected("/a", "/a"), "site 1, redirect of /a: /a leads back to it"),
        (redirected("/a/*", "/a/b/{rest}"), "site 1, redirect of /a/*: /a/b/{rest} leads back to it"),
        (redirected("/*", "/index.html"), "site 1, redirect of /*: /index.html leads back to it"),
        (paged(200, "/a"), "site 1, error page of 200: 200 is no error"),
        (paged(404, "a.html"), "site 1, error page of 404: \"a.html\" is no path of the site"),
        (paged(404, "/a?b"), "site 1, error page of 404: \"/a?b\" is no path of the site"),
        (paged(404, "/../a"), "site 1, error page of 404: /../a names no file"),
        (paged(404, "/errors/"), "site 1, error page of 404: /errors/ names no file"),
        (paged(404, "/%ff"), "site 1, error page of 404: /%ff names no file"),
        (paged(404, "/fixed/a"), "site 1, error page of 404: no files are served at /fixed/a"),
        (paged(404, "/moved/a"), "site 1, error page of 404: /moved/a is redirected: a page is a file"),
        (
            set("Content-Length", "1"),
            "site 1 (h.example), route /r, header Content-Length: it says where an answer ends",
        ),
        (set("date", "x"), "site 1 (h.example), route /r, header date: it is the server's clock"),
        (set("X", "a\r\nb"), "site 1 (h.example), route /r, header X: a handler set the field"),
    ] {
        let (_, told) = mistake(sites);
        assert!(told.starts_with(text), "{told}\n{text}");
    }
    let circle = vec![redirect("/a", "/b", 308), redirect("/b", "/c", 308), redirect("/c", "/a", 308)];
    assert_eq!(mistakes(vec![Site { redirects: circle, ..site() }]).told.len(), 3);
    let chain =
        vec![redirect("/a", "/b", 308), redirect("/b/*", "/c/{rest}", 308), redirect("/c/*", "/{rest}", 308)];
    assert!(checked(vec![Site { redirects: chain, ..site() }]).is_ok());
}

/// Its own field, or that of its site unless the route leaves it out.
#[test]
fn an_answer_that_asks_to_log_in_says_how() {
    let basic = headers(&[("WWW-Authenticate", "Basic realm=\"a\"")], &[]);
    let closed = |own: Headers| Route { content: Some(fixed(401, "")), headers: own, ..route("/a") };
    let told = |of_site: &Headers, of_route: &Headers| {
        let (headers, routes) = (of_site.clone(), vec![closed(of_route.clone())]);
        checked(vec![Site { headers, routes, ..site() }]).is_ok()
    };
    let asked = |status| mistake(vec![Site { content: fixed(status, ""), ..site() }]).1;
    assert_eq!(asked(401), "site 1: a 401 says how to log in: set WWW-Authenticate in its headers");
    assert_eq!(asked(407), "site 1: a 407 says how to log in: set Proxy-Authenticate in its headers");
    let (none, removed) = (Headers::default(), headers(&[], &["www-authenticate"]));
    assert_eq!(
        [told(&basic, &none), told(&none, &basic), told(&none, &none), told(&basic, &removed)],
        [true, true, false, false]
    );
}

/// Files redirect too, where a page has one path: by the name alone, for what is there shows only later.
#[test]
fn a_redirect_to_what_files_redirect_back_is_refused() {
    let told = |clean_urls: bool, from: &str, to: &str| {
        let find = FindOptions { clean_urls, ..FindOptions::default() };
        let options = FolderOptions { find, ..FolderOptions::default() };
        let folders = vec![Folder::open_with(&std::env::temp_dir(), &options).expect("a folder")];
        let sites = vec![Site { redirects: vec![redirect(from, to, 308)], ..site() }];
        let checked = Sites::new(Options { folders, cache: CacheLimits::default(), sites });
        checked.err().map(|mistakes| mistakes.to_string())
    };
    for (from, to) in [
        ("/about", "/about.html"),
        ("/about", "/about.html?x#y"),
        ("/caf%c3%a9", "/caf%C3%A9.html"),
        ("/about/*", "/about.html"),
        ("/docs/", "/docs/index.html"),
        ("/", "/index.html"),
    ] {
        let expected = format!("site 1, redirect of {from}: {to} leads back to it");
        assert_eq!(told(true, from, to), Some(expected));
        assert_eq!(told(false, from, to), None, "{from} {to}");
    }
    for (from, to) in [
        ("/about", "/other.html"),
        ("/about.html", "/about"),
        ("/x/*", "/y/{rest}.html"),
        ("/docs/", "/docs"),
    ] {
        assert_eq!(told(true, from, to), None, "{from} {to}");
    }
}

#[test]
fn a_long_chain_of_redirects_is_not_followed_to_its_end() {
    let circle = |len: usize| -> Vec<_> {
        (0..len).map(|at| redirect(&format!("/{at}"), &format!("/{}", (at + 1) % len), 308)).collect()
    };
    let told = |len| {
        checked(vec![Site { redirects: circle(len), ..site() }]).err().map(|mistakes| mistakes.told.len())
    };
    assert_eq!(told(REDIRECTS_FOLLOWED_MAX), Some(REDIRECTS_FOLLOWED_MAX));
    assert_eq!(told(REDIRECTS_FOLLOWED_MAX + 1), None);
}

#[test]
fn a_bounded_number_of_mistakes_is_told() {
    let routes = vec![route("wrong"); MISTAKES_MAX + 7];
    let mistakes = mistakes(vec![Site { routes, ..site() }]);
    assert_eq!((mistakes.told.len(), mistakes.more), (MISTAKES_MAX, 7));
    assert!(mistakes.to_string().ends_with("\nand 7 more"));
}

#[test]
fn sites_and_routes_are_bounded() {
    let named = |number: usize| Site { hosts: vec![format!("h{number}")], ..site() };
    assert!(checked((0..1_000).map(named).collect()).is_ok());
    let (place, text) = mistake((0..=SITES_MAX).map(named).collect());
    assert_eq!((place, text.as_str()), (Place::Sites, "sites: there are 65537, and may be 65536"));
    let many = |count: usize| (0..count).map(|number| route(&format!("/{number}/*"))).collect();
    let redirects = vec![redirect("/a", "/b", 308)];
    let with = |routes| vec![Site { redirects: redirects.clone(), routes, ..site() }];
    assert!(checked(with(many(ROUTES_MAX - 1))).is_ok());
    let (place, text) = mistake(with(many(ROUTES_MAX)));
    assert_eq!(
        (place, text.as_str()),
        (Place::Site(0), "site 1: it has more than 65536 routes and redirects")
    );
}
