//! Errors: pages of the site, and those that are shown without.

use super::case::{Case, ask, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "errors have their pages, with their status",
        keys: &["site.error_pages"],
        hosts: &[],
        lines: "root = \"www\"\nerror_pages = { 404 = \"/home.html\", 405 = \"/about.html\" }\n",
        asks: &[
            get("/none", 404).has(&[("Content-Type", "text/html; charset=utf-8")]).is("home"),
            ask("HEAD", "/none", 404).has(&[("Content-Length", "4")]),
            ask("DELETE", "/f.txt", 405).has(&[("Allow", "GET, HEAD, OPTIONS")]).is("about"),
            get("/none", 404).with(&["If-None-Match: *", "Range: bytes=0-0"]).is("home"),
            get("/home.html", 200).is("home"),
            get("/out.txt", 403).is("Forbidden\n"),
        ],
    },
    Case {
        about: "an error without a page has a line, and a page for who asks for HTML",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            get("/none", 404).has(&[("Vary", "Accept")]).is("Not Found\n"),
            get("/none", 404)
                .with(&["Accept: text/html"])
                .has(&[("Content-Type", "text/html; charset=utf-8"), ("Vary", "Accept")])
                .holds(&["<title>404 Not Found</title>"]),
            get("/none", 404).with(&["Accept: */*"]).is("Not Found\n"),
            get("/out.txt", 403).with(&["Accept: text/html"]).holds(&["<title>403 Forbidden</title>"]),
        ],
    },
    Case {
        about: "what depends on Accept says so once",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\nspa = \"/index.html\"\nlisting = true\n",
        asks: &[
            get("/none.js", 404).has(&[("Vary", "Accept")]),
            get("/open/", 412).with(&["If-Match: \"x\""]).has(&[("Vary", "Accept")]),
        ],
    },
    Case {
        about: "an error that others would not get says so, with a page of the site too",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\nspa = \"/index.html\"\nerror_pages = { 404 = \"/home.html\" }\n",
        asks: &[
            get("/version/1.2", 200).with(&["Accept: text/html"]).has(&[("Vary", "Accept")]).is("index"),
            get("/version/1.2", 404).has(&[("Vary", "Accept")]).is("home"),
        ],
    },
    Case {
        about: "a page that is not there is no error of its own",
        keys: &["site.error_pages"],
        hosts: &[],
        lines: "root = \"www\"\nerror_pages = { 404 = \"/gone.html\" }\n",
        asks: &[get("/none", 404).is("Not Found\n")],
    },
];
