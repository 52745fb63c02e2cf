//! What answers say: media types, `Cache-Control`, fields that are set or removed.

use super::case::{Case, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "media types by extension, before the known ones",
        keys: &["site.mime"],
        hosts: &[],
        lines: "root = \"www\"\nmime = { txt = \"text/x-note\", foo = \"application/x-foo\" }\n",
        asks: &[
            get("/f.txt", 200).has(&[("Content-Type", "text/x-note; charset=utf-8")]),
            get("/page.foo", 200).has(&[("Content-Type", "application/x-foo")]),
            get("/about.html", 200).has(&[("Content-Type", "text/html; charset=utf-8")]),
        ],
    },
    Case {
        about: "how long answers may be kept, by path and type; the first that applies counts",
        keys: &["site.cache_control", "cache_control.type", "cache_control.path", "cache_control.value"],
        hosts: &[],
        lines: "root = \"www\"\ncache_control = [ { path = \"/f.txt\", value = \"no-store\" }, { type = \"text/*\", value = \"max-age=60\" } ]\n",
        asks: &[
            get("/f.txt", 200).has(&[("Cache-Control", "no-store")]),
            get("/about.html", 200).has(&[("Cache-Control", "max-age=60"), ("ETag", "*")]),
            get("/about.html", 304).with(&["If-None-Match: {etag}"]).has(&[("Cache-Control", "max-age=60")]),
            get("/page.foo", 200).has(&[("Cache-Control", "")]),
            get("/none", 404).has(&[("Cache-Control", "")]),
        ],
    },
    Case {
        about: "a path of a rule is percent-decoded, as that of a request",
        keys: &["cache_control.path"],
        hosts: &[],
        lines: "root = \"www\"\ncache_control = [ { path = \"/100%25.txt\", value = \"no-store\" }, { path = \"/op%65n/*\", value = \"no-cache\" } ]\n",
        asks: &[
            get("/100%25.txt", 200).is("percent").has(&[("Cache-Control", "no-store")]),
            get("/open/a%20b.txt", 200).is("spaced").has(&[("Cache-Control", "no-cache")]),
            get("/f.txt", 200).has(&[("Cache-Control", "")]),
        ],
    },
    Case {
        about: "what is set for long is not for errors, and what is said of content not without it",
        keys: &["headers.set"],
        hosts: &[],
        lines: "root = \"www\"\nheaders = { set = { Cache-Control = \"max-age=9\", Content-Language = \"de\" } }\n",
        asks: &[
            get("/f.txt", 200).has(&[("Cache-Control", "max-age=9"), ("Content-Language", "de")]),
            get("/docs", 301).has(&[("Cache-Control", "max-age=9"), ("Content-Language", "")]),
            get("/none", 404).has(&[("Cache-Control", ""), ("Content-Language", "")]),
        ],
    },
    Case {
        about: "fields that every answer has, or none has",
        keys: &["site.headers", "headers.set", "headers.remove"],
        hosts: &[],
        lines: "root = \"www\"\nheaders = { set = { X-Frame-Options = \"DENY\", Expires = \"never\" }, remove = [\"etag\"] }\n",
        asks: &[
            get("/f.txt", 200).has(&[("X-Frame-Options", "DENY"), ("Expires", "never"), ("ETag", "")]),
            get("/none", 404).has(&[("X-Frame-Options", "DENY")]),
            get("/docs", 301).has(&[("X-Frame-Options", "DENY")]),
        ],
    },
];
