//! What is no request, or asks for something of the connection.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, status, value};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "Host",
        why: "None, two, or one that can't be a host is `400` (RFC 9112, 3.2). An empty one is well formed, and the site for all other names answers (RFC 9112, 3.3).",
        covers: &[
            status(NGINX, "200", "400", &["Host:$"]),
            status(
                STATIC_WEB_SERVER,
                "400",
                "200",
                &["GET /small.txt HTTP/1.1$", "Host: a · Host: a", "Host: a/b"],
            ),
        ],
    },
    Cause {
        title: "Request lines that are none",
        why: "HTTP/0.9 is over; two spaces, or line feeds without their carriage returns, are not mended (RFC 9112, 2.2 and 3 leave it open): servers that read \
              the same bytes otherwise are how requests are smuggled.",
        covers: &[
            status(NGINX, "400", "HTTP/0.9", &["raw · GET /small.txt$"]),
            status(NGINX, "400", "200", &["GET  /small.txt"]),
            status(EACH, "400", "200", &["HTTP/1.1\\nHost"]),
        ],
    },
    Cause {
        title: "Versions",
        why: "A higher minor version is answered as 1.1 (2.5), a higher major one with `505` (15.6.6). The version in an answer is the server's own, whatever was asked in (6.2).",
        covers: &[
            status(STATIC_WEB_SERVER, "200", "400", &["HTTP/1.2"]),
            status(STATIC_WEB_SERVER, "505", "400", &["HTTP/2.0"]),
            value(STATIC_WEB_SERVER, "the version", "HTTP/1.1", "HTTP/1.0", &["HTTP/1.0"]),
        ],
    },
    Cause {
        title: "Schemes",
        why: "A resource of `https` needs a connection with TLS, and one of `ftp` another protocol: a server must not act as if they were its own (7.4), so it is `421`. \
              Behind a trusted gateway that sends `https` targets, `server.trusted_gateway` lets them in.",
        covers: &[status(EACH, "421", "200", &["GET https://", "GET ftp://"])],
    },
    Cause {
        title: "Where a message ends",
        why: "Two lengths, even the same, or a length beside chunks are `400` and the end of the connection (RFC 9112, 6.3 allows it), a coding that isn't known is `501` \
              (RFC 9112, 6.1), and chunks that are none, or have an extension without a name (RFC 9112, 7.1.1), are `400` also where the body isn't wanted: nothing after them \
              can be trusted.",
        covers: &[
            status(
                STATIC_WEB_SERVER,
                "400",
                "200",
                &["Content-Length: 3 · Content-Length: 3", "Transfer-Encoding: chunked · x"],
            ),
            status(EACH, "400", "200", &["chunked · 3; · abc"]),
            status(STATIC_WEB_SERVER, "501", "200", &["Transfer-Encoding: gzip, chunked"]),
            status(STATIC_WEB_SERVER, "400", "405", &["Transfer-Encoding: chunked · Content-Length"]),
        ],
    },
    Cause {
        title: "Large heads",
        why: "What is too large is told so (RFC 6585, 5: `431`). 64 KiB and 100 fields are settings (`limits.head_bytes_max`, `fields_max`); others take more fields, or longer ones.",
        covers: &[
            status(NGINX, "431", "400", &["X: aaa"]),
            status(NGINX, "431", "200", &["X0: y"]),
            status(STATIC_WEB_SERVER, "431", "200", &["X: aaa"]),
        ],
    },
    Cause {
        title: "Expect",
        why: "What can't be met is `417` (10.1.1). Where the body is here already, `100` would be of no use to anyone (10.1.1).",
        covers: &[
            status(EACH, "417", "200", &["Expect: miracles"]),
            value(NGINX, "before it", "–", "[100]", &["Expect: 100-continue"]),
        ],
    },
    Cause {
        title: "Connections that stay",
        why: "A refusal that leaves no doubt where the request ends is no reason to hang up. nginx does so after `400` and `405` to TRACE, and after `412`, without saying it.",
        covers: &[
            value(NGINX, "Connection", "–", "close", &[]),
            value(NGINX, "the connection", "stays", "closes", &[]),
        ],
    },
    Cause {
        title: "Connection",
        why: "A connection stays unless it is said otherwise (RFC 9112, 9.3), so `keep-alive` is not said. That it ends is said (RFC 9112, 9.6), so that no client sends a \
              further request into it.",
        covers: &[
            value(NGINX, "Connection", "–", "keep-alive", &[]),
            value(STATIC_WEB_SERVER, "Connection", "close", "–", &[]),
        ],
    },
];
