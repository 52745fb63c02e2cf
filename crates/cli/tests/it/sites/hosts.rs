//! Host names: exact, with a star, and the site for all others.

use super::case::{Case, ask, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "host names, exact and with a star; what no site has is for the one without",
        keys: &["site.hosts", "site.root"],
        hosts: &["a.test", "*.b.test"],
        lines: "root = \"other\"\n",
        asks: &[
            get("/", 200).of("a.test").is("other"),
            get("/", 200).of("A.TEST:8080").is("other"),
            get("/", 200).of("x.y.B.test").is("other"),
            get("/", 200).of("b.test").is("index"),
            get("/", 200).of("elsewhere.test").is("index"),
            // A target with a host wins over the field (RFC 9112 section 3.2.2).
            get("http://a.test/", 200).of("elsewhere.test").is("other"),
            get("http://elsewhere.test/", 200).of("a.test").is("index"),
        ],
    },
    Case {
        about: "an exact name before one with a star, the longer name before the shorter",
        keys: &["site.hosts"],
        hosts: &["one.b.test", "*.deep.b.test"],
        lines: "root = \"www\"\nindex = [\"home.html\"]\n",
        asks: &[
            get("/", 200).of("one.b.test").is("home"),
            get("/", 200).of("x.deep.b.test").is("home"),
            get("/", 200).of("two.b.test").is("other"),
            get("/", 200).of("deep.b.test").is("other"),
        ],
    },
    Case {
        about: "methods: what only asks, what may be asked, and what is not for files",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            ask("HEAD", "/f.txt", 200).has(&[("Content-Length", "7"), ("ETag", "*")]).is(""),
            ask("OPTIONS", "/f.txt", 204).has(&[("Allow", "GET, HEAD, OPTIONS")]),
            ask("DELETE", "/f.txt", 405).has(&[("Allow", "GET, HEAD, OPTIONS")]),
            ask("POST", "/none", 405),
        ],
    },
];
