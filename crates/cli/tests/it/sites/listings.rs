//! Lists of folders, as HTML or JSON by what the client accepts.

use super::case::{Case, ask, get};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json"), ("Vary", "Accept")];
const HTML: &[(&str, &str)] = &[("Content-Type", "text/html; charset=utf-8"), ("Vary", "Accept")];

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a folder without an index is listed",
        keys: &["site.listing"],
        hosts: &[],
        lines: "root = \"www\"\nlisting = true\n",
        asks: &[
            get("/open/", 200).has(HTML).holds(&["<a href=\"./a%20b.txt\"", "a b.txt", "</html>"]),
            get("/open/", 200).with(&["Accept: application/json"]).has(JSON).holds(&["\"name\":\"a b.txt\""]),
            get("/open/", 200).with(&["Accept: text/html;q=0.5, application/json"]).has(JSON),
            get("/open/", 200).with(&["Accept: text/html, application/json;q=0.5"]).has(HTML),
            ask("HEAD", "/open/", 200).has(HTML).is(""),
            get("/open", 301).has(&[("Location", "/open/")]),
            get("/docs/", 200).is("docs"),
        ],
    },
    Case {
        about: "and is not where nothing says so",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[get("/open/", 404)],
    },
];
