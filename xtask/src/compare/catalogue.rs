//! The requests that are sent to every server.

use super::case::Case;
use super::sites::Site::{self, Clean, List, Plain, Spa};

/// Paths that are asked for with `GET` and nothing else.
const PATHS: &[(Site, &[&str])] = &[
    (
        Plain,
        &[
            // Indexes and folders.
            "/",
            "/index.html",
            "/folder/",
            "/folder",
            "/folder?q=1",
            "/folder//",
            "/bare/",
            "/bare",
            "/?q=1",
            // Queries, characters, encodings.
            "/small.txt?v=2",
            "/small.txt?",
            "/a%20b.txt",
            "/100%25.txt",
            "/%C3%BC.txt",
            "/plus+and;semi.txt",
            "/%73mall.txt",
            "/small.txt%00",
            "/small%ZZ",
            "/100%.txt",
            "/%73mall%2Etxt",
            "/\u{fc}.txt",
            // Slashes, dots.
            "//small.txt",
            "/folder//index.html",
            "/./small.txt",
            "/folder/../small.txt",
            "/../outside.txt",
            "/%2e%2e/outside.txt",
            "/folder/..%2fsmall.txt",
            "/folder%2findex.html",
            "/..\\outside.txt",
            "/small.txt/",
            "/folder/.",
            "/folder/..",
            "/%2F",
            "/old/",
            "/%2ehidden",
            "/folder/%69ndex.html",
            // Hidden names, links.
            "/.hidden",
            "/.git/config",
            "/.well-known/security.txt",
            "/link-in.txt",
            "/link-out.txt",
            // What isn't there, or is elsewhere.
            "/none",
            "/none/",
            "/404.html",
            "/old",
            "/old?a=b",
            // Media types, caching.
            "/style.css",
            "/app.js",
            "/module.mjs",
            "/data.json",
            "/picture.svg",
            "/photo.webp",
            "/font.woff2",
            "/code.wasm",
            "/app.webmanifest",
            "/paper.pdf",
            "/note.xyz",
            "/what",
            "/UPPER.HTML",
            "/assets/app.3f9c.js",
            "/assets/none.js",
            "/packed.txt.gz",
            "/empty.txt",
        ],
    ),
    (Spa, &["/", "/users/7", "/users/john.doe", "/app.js", "/none.js", "/folder", "/bare/"]),
    (
        Clean,
        &[
            "/about",
            "/about.html",
            "/about.html?q=1",
            "/about/",
            "/index.html",
            "/folder",
            "/folder/index.html",
            "/none",
        ],
    ),
    (List, &["/", "/folder/", "/folder", "/none/"]),
];

/// Requests of HTTP/1.1 with a `Host`: site, method, target, fields.
const USUAL: &[(Site, &str, &str, &str)] = &[
    // Methods.
    (Plain, "HEAD", "/small.txt", ""),
    (Plain, "HEAD", "/none", ""),
    (Plain, "HEAD", "/folder", ""),
    (Plain, "OPTIONS", "/small.txt", ""),
    (Plain, "OPTIONS", "*", ""),
    (Plain, "POST", "/small.txt", "Content-Length: 3"),
    (Plain, "PUT", "/new.txt", "Content-Length: 3"),
    (Plain, "DELETE", "/small.txt", ""),
    (Plain, "TRACE", "/small.txt", ""),
    (Plain, "BREW", "/small.txt", ""),
    (Plain, "get", "/small.txt", ""),
    (Plain, "CONNECT", "compare.test:80", ""),
    (Plain, "POST", "/none", "Content-Length: 3"),
    (Spa, "POST", "/users/7", "Content-Length: 3"),
    (Spa, "HEAD", "/users/7", ""),
    // Conditions.
    (Plain, "GET", "/small.txt", "If-None-Match: TAG"),
    (Plain, "HEAD", "/small.txt", "If-None-Match: TAG"),
    (Plain, "GET", "/small.txt", "If-None-Match: \"other\", TAG"),
    (Plain, "GET", "/small.txt", "If-None-Match: W/TAG"),
    (Plain, "GET", "/small.txt", "If-None-Match: \"other\""),
    (Plain, "GET", "/small.txt", "If-None-Match: *"),
    (Plain, "GET", "/none", "If-None-Match: *"),
    (Plain, "GET", "/small.txt", "If-Modified-Since: DATE"),
    (Plain, "GET", "/small.txt", "If-Modified-Since: Sat, 05 Nov 1994 08:49:37 GMT"),
    (Plain, "GET", "/small.txt", "If-Modified-Since: Mon, 07 Nov 1994 08:49:37 GMT"),
    (Plain, "GET", "/small.txt", "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"),
    (Plain, "GET", "/small.txt", "If-Modified-Since: yesterday"),
    (Plain, "GET", "/small.txt", "If-None-Match: \"other\" | If-Modified-Since: DATE"),
    (Plain, "GET", "/small.txt", "If-Match: TAG"),
    (Plain, "GET", "/small.txt", "If-Match: \"other\""),
    (Plain, "GET", "/small.txt", "If-Match: *"),
    (Plain, "GET", "/small.txt", "If-Match: W/TAG"),
    (Plain, "GET", "/", "If-None-Match: TAG"),
    (Plain, "POST", "/small.txt", "If-Match: \"other\" | Content-Length: 3"),
    (Plain, "GET", "/none", "If-Match: *"),
    (Plain, "GET", "/small.txt", "If-Unmodified-Since: DATE"),
    (Plain, "GET", "/small.txt", "If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT"),
    // Parts.
    (Plain, "GET", "/small.txt", "Range: bytes=0-3"),
    (Plain, "GET", "/small.txt", "Range: bytes=-4"),
    (Plain, "GET", "/small.txt", "Range: bytes=0-1,4-5"),
    (Plain, "GET", "/small.txt", "Range: bytes=99-"),
    (Plain, "GET", "/small.txt", "Range: bytes=3-1"),
    (Plain, "GET", "/small.txt", "Range: lines=0-1"),
    (Plain, "HEAD", "/small.txt", "Range: bytes=0-3"),
    (Plain, "GET", "/small.txt", "Range: bytes=0-3 | If-Range: TAG"),
    (Plain, "GET", "/small.txt", "Range: bytes=0-3 | If-Range: \"other\""),
    (Plain, "GET", "/small.txt", "Range: bytes=0-3 | If-Range: DATE"),
    (Plain, "GET", "/empty.txt", "Range: bytes=0-"),
    (Plain, "GET", "/none", "Range: bytes=0-3"),
    (Plain, "GET", "/small.txt", "Range: bytes=0-3 | If-None-Match: TAG"),
    (Plain, "GET", "/small.txt", "Range: bytes=0-3 | If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT"),
    // Codings.
    (Plain, "GET", "/packed.txt", ""),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: gzip"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: GZIP"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: x-gzip"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: gzip;q=0"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: *"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: *;q=0"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: identity;q=0"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: identity;q=0, gzip"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: identity, gzip;q=0.5"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: deflate"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: gzip | If-None-Match: TAG"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: gzip | Range: bytes=0-3"),
    (Plain, "GET", "/both.css", "Accept-Encoding: gzip, deflate, br, zstd"),
    (Plain, "GET", "/both.css", "Accept-Encoding: gzip, br;q=0.5"),
    (Plain, "GET", "/both.css", "Accept-Encoding: br;q=0.8, gzip;q=0.8, *;q=0.1"),
    (Plain, "GET", "/both.css", "Accept-Encoding: br"),
    (Plain, "HEAD", "/both.css", "Accept-Encoding: gzip"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding:"),
    (Plain, "GET", "/packed.txt", "Accept-Encoding: gzip;q=2"),
    (Plain, "GET", "/small.txt", "Accept-Encoding: gzip"),
    (Plain, "GET", "/small.txt", "Accept-Encoding: identity;q=0"),
    // Lists and errors by what is accepted.
    (List, "GET", "/", "Accept: application/json"),
    (List, "GET", "/", "Accept: text/html"),
    (List, "HEAD", "/", ""),
    (Plain, "POST", "/small.txt", "Accept: text/html | Content-Length: 3"),
    (Spa, "GET", "/none.js", "Accept: text/html"),
    (Plain, "GET", "/none", "Accept: text/html"),
    (Plain, "GET", "/none", "Accept-Encoding: gzip, br"),
    (List, "GET", "/", "If-None-Match: TAG"),
    (List, "GET", "/", "Range: bytes=0-3"),
    (List, "GET", "/", "Accept: application/json;q=0.1, text/html"),
    (List, "POST", "/", "Content-Length: 3"),
    // Redirects by other methods.
    (Plain, "HEAD", "/old", ""),
    (Plain, "POST", "/old", "Content-Length: 3"),
    (Plain, "OPTIONS", "/old", ""),
    (Plain, "POST", "/folder", "Content-Length: 3"),
    (Clean, "HEAD", "/about", ""),
    (Clean, "POST", "/about.html", "Content-Length: 3"),
    (Clean, "GET", "/about", "If-None-Match: TAG"),
    // Hosts, connections, expectations.
    (Plain, "GET", "http://compare.test/small.txt", ""),
    (Plain, "GET", "http://other.test/small.txt?q", ""),
    (Plain, "GET", "https://compare.test/small.txt", ""),
    (Plain, "GET", "ftp://compare.test/small.txt", ""),
    (Plain, "GET", "/small.txt", "Connection: close"),
    (Plain, "GET", "/small.txt", "Connection: Upgrade | Upgrade: h2c"),
    (Plain, "GET", "/small.txt", "Expect: 100-continue | Content-Length: 3"),
    (Plain, "GET", "/small.txt", "Expect: miracles"),
    (Plain, "GET", "small.txt", ""),
    (Plain, "GET", "/small.txt#part", ""),
    (Plain, "GET", "/small.txt", "Content-Length: 3"),
    (Plain, "GET", "/small.txt", "Transfer-Encoding: gzip, chunked"),
    (Plain, "GET", "/small.txt", "Content-Length: 3 | Content-Length: 3"),
    (Plain, "GET", "/small.txt", "Content-Length: 3, 3"),
    (Plain, "GET", "/small.txt", "Content-Length: +3"),
    (Plain, "GET", "/small.txt", "Content-Length: 3 | Content-Length: 4"),
];

/// Bytes as they are.
const RAW: &[&str] = &[
    "GET /small.txt HTTP/1.0\r\n\r\n",
    "GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /folder HTTP/1.0\r\n\r\n",
    "HEAD /small.txt HTTP/1.0\r\n\r\n",
    "GET /small.txt HTTP/1.0\r\nRange: bytes=0-3\r\n\r\n",
    "GET /small.txt\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost:\r\n\r\n",
    "GET /small.txt HTTP/1.2\r\nHost: a\r\n\r\n",
    "GET /small.txt HTTP/2.0\r\nHost: a\r\n\r\n",
    "GET /small.txt HTTP/1.1x\r\nHost: a\r\n\r\n",
    "GET /small.txt http/1.1\r\nHost: a\r\n\r\n",
    "GET  /small.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a b.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nGET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /small.txt HTTP/1.1\nHost: a\n\n",
    "GET /small.txt HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
    "POST /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    "POST /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "POST /small.txt HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "POST /small.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;\r\nabc\r\n0\r\n\r\n",
    "HEAD /small.txt HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
];

/// Characters of a target, and of a field, that no server takes.
const TOO_LONG: usize = 100_000;

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (site, paths) in PATHS {
        cases.extend(paths.iter().map(|path| Case::usual(*site, "GET", path, "")));
    }
    for &(site, method, target, fields) in USUAL {
        cases.push(Case::usual(site, method, target, fields).with_body());
    }
    cases.extend(RAW.iter().map(|bytes| Case::raw(Plain, bytes)));
    let long = "a".repeat(TOO_LONG);
    cases.push(Case::usual(Plain, "GET", &format!("/{long}"), ""));
    cases.push(Case::usual(Plain, "GET", "/small.txt", &format!("X: {long}")));
    let many = (0..200).map(|number| format!("X{number}: y")).collect::<Vec<_>>().join("|");
    cases.push(Case::usual(Plain, "GET", "/small.txt", &many));
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::cases;

    #[test]
    fn there_are_many_and_each_has_a_name_of_its_own() {
        const LEAST: usize = 80;
        let cases = cases();
        let names: BTreeSet<_> = cases.iter().map(|case| (case.site, &case.name)).collect();
        assert!(cases.len() >= LEAST && names.len() == cases.len(), "{} of {}", names.len(), cases.len());
    }
}
