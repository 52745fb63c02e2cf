//! What answers say: media types, `Cache-Control`, fields that are set or removed.

use super::case::{Case, ask, get};

/// Headers of everything that the site has written itself.
const SITES_POLICY: &[(&str, &str)] = &[
    ("Content-Security-Policy", "default-src 'self'"),
    ("Content-Security-Policy-Report-Only", "img-src 'self'"),
    ("X-Frame-Options", "DENY"),
];

/// Headers of the server's own error pages. A unit test compares the hash with their style.
const POLICY_OF_ERRORS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'sha256-CRnvWpSEeOl+xf7MFNYQdxAPE3hv/xhigeUU9ttvzKw='; base-uri 'none'; form-action 'none'",
    ),
    ("Content-Security-Policy-Report-Only", ""),
    ("X-Frame-Options", "DENY"),
];

/// Headers of folder lists.
const POLICY_OF_LISTS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'sha256-4iLElNXbs3Ic8yid5n2paau5r+Co/LnawFfkQH5aS9U='; base-uri 'none'; form-action 'none'",
    ),
    ("Content-Security-Policy-Report-Only", ""),
    ("X-Frame-Options", "DENY"),
];

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
        about: "the path of a cache rule is percent-decoded",
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
        about: "a site's policy applies to its own content, and the server's own pages keep theirs",
        keys: &["headers.set"],
        hosts: &[],
        lines: "root = \"www\"\nlisting = true\nerror_pages = { 416 = \"/about.html\" }\n\
                headers = { set = { Content-Security-Policy = \"default-src 'self'\", Content-Security-Policy-Report-Only = \"img-src 'self'\", \
                X-Frame-Options = \"DENY\" } }\n",
        asks: &[
            get("/f.txt", 200).has(SITES_POLICY),
            get("/docs/", 200).has(SITES_POLICY).is("docs"),
            get("/docs", 301).has(SITES_POLICY),
            // Errors with a line of text or with a page of the site.
            get("/none", 404).has(SITES_POLICY).is("Not Found\n"),
            get("/f.txt", 416).with(&["Range: bytes=99-", "Accept: text/html"]).has(SITES_POLICY).is("about"),
            get("/none", 404).with(&["Accept: text/html"]).has(POLICY_OF_ERRORS),
            ask("HEAD", "/none", 404).with(&["Accept: text/html"]).has(POLICY_OF_ERRORS),
            ask("POST", "/none", 405).with(&["Accept: text/html", "Content-Length: 0"]).has(POLICY_OF_ERRORS),
            get("/open/", 412).with(&["If-Match: \"x\"", "Accept: text/html"]).has(POLICY_OF_ERRORS),
            get("/open/", 200).has(POLICY_OF_LISTS),
            get("/open/", 200).with(&["Accept: application/json"]).has(POLICY_OF_LISTS),
            ask("HEAD", "/open/", 200).has(POLICY_OF_LISTS),
            // A 304 updates the headers of a stored response (RFC 9111 section 4.3.4).
            get("/open/", 304).with(&["If-None-Match: {etag}"]).has(POLICY_OF_LISTS),
        ],
    },
    Case {
        about: "removing the site's policy keeps that of the server's own pages",
        keys: &["site.route.headers", "headers.remove"],
        hosts: &[],
        lines: "root = \"www\"\nlisting = true\nheaders = { set = { Content-Security-Policy = \"default-src 'self'\" } }\n\
                [[site.route]]\npath = \"/open/*\"\nheaders = { remove = [\"content-security-policy\"] }\n",
        asks: &[
            get("/f.txt", 200).has(&[("Content-Security-Policy", "default-src 'self'")]),
            get("/open/a%20b.txt", 200).has(&[("Content-Security-Policy", "")]),
            get("/open/", 200).has(POLICY_OF_LISTS.split_at(2).0),
            get("/open/none", 404).with(&["Accept: text/html"]).has(POLICY_OF_ERRORS.split_at(2).0),
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
