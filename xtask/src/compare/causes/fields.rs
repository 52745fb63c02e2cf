//! Fields of answers that were otherwise the same.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, status, value};

const LISTS: &[&str] = &["list: "];
const NOTHING: &[&str] = &["clean: GET /none", "list: GET /none/"];

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "Lists",
        why: "A list has a tag, is looked at again each time, and may load nothing (`Content-Security-Policy`). It comes as JSON to who accepts that, and so varies by `Accept`; \
              nginx and static-web-server have JSON as a setting for all. Its length is known.",
        covers: &[
            value(EACH, "cache-control", "no-cache", "–", LISTS),
            value(EACH, "content-security-policy", "there", "–", LISTS),
            value(EACH, "x-content-type-options", "nosniff", "–", LISTS),
            value(EACH, "x-frame-options", "SAMEORIGIN", "–", LISTS),
            value(EACH, "content-type", "application/json", "text/html; charset=utf-8", LISTS),
            value(NGINX, "etag", "strong", "–", LISTS),
            status(NGINX, "304", "200", &["list: GET / · If-None-Match"]),
            value(NGINX, "content-length", "there", "–", LISTS),
            value(NGINX, "transfer-encoding", "–", "there", LISTS),
        ],
    },
    Cause {
        title: "The server's own error pages",
        why: "They have a `Content-Security-Policy` that allows their style and nothing else, so that one of the site can't break them.",
        covers: &[value(EACH, "content-security-policy", "there", "–", &["Accept: text/html"])],
    },
    Cause {
        title: "Fields of the site in every answer",
        why: "What `headers` sets stands in errors and redirects of the site too, once; static-web-server leaves it out there, and nginx has it twice in a `416`.",
        covers: &[
            value(STATIC_WEB_SERVER, "x-content-type-options", "nosniff", "–", &[]),
            value(NGINX, "x-content-type-options", "nosniff", "nosniff | nosniff", &["Range: bytes=99-"]),
        ],
    },
    Cause {
        title: "Fields of the site where no site is known",
        why: "nginx does better: a request that can't be read gets the fields of its default site. Here such an answer comes before any site is looked for, and is a line of plain text.",
        covers: &[value(NGINX, "x-content-type-options", "–", "nosniff", &[])],
    },
    Cause {
        title: "Rules on caching",
        why: "They go by the media type and the path of what is sent, and errors have none. Those of static-web-server go by the path of the request, there or not.",
        covers: &[
            value(STATIC_WEB_SERVER, "cache-control", "no-cache", "–", &["/UPPER.HTML"]),
            value(
                STATIC_WEB_SERVER,
                "cache-control",
                "–",
                "*",
                &["/bare/", "/none/", "/old/", "/assets/none.js"],
            ),
        ],
    },
    Cause {
        title: "Media types",
        why: "As registered today: `text/javascript` (RFC 9239), `application/manifest+json`; text has its charset, without which a browser guesses. (nginx: the types that it comes with.)",
        covers: &[
            value(EACH, "content-type", "text/javascript; charset=utf-8", "*", &[".js", ".mjs"]),
            value(EACH, "content-type", "image/svg+xml; charset=utf-8", "image/svg+xml", &[]),
            value(NGINX, "content-type", "application/manifest+json", "application/octet-stream", &[]),
            value(NGINX, "content-type", "application/gzip", "application/octet-stream", &[]),
            value(STATIC_WEB_SERVER, "content-type", "text/css; charset=utf-8", "text/css", &[]),
        ],
    },
    Cause {
        title: "The query of a redirect",
        why: "It goes along unless `to` has its own; nginx's `return` leaves it out.",
        covers: &[value(NGINX, "location", "/about.html?a=b", "/about.html", &["GET /old?a=b"])],
    },
    Cause {
        title: "Vary",
        why: "It names what the answer was chosen by: `Accept-Encoding` where a file has siblings, `Accept` where an error comes as a page to who asks for HTML. static-web-server says \
              `accept-encoding` of every file, which costs caches nothing but copies.",
        covers: &[
            value(EACH, "vary", "Accept", "*", &[]),
            value(STATIC_WEB_SERVER, "vary", "*", "accept-encoding", &[]),
        ],
    },
    Cause {
        title: "A page that nobody asked for",
        why: "Without `error_pages` none is looked for. static-web-server takes `404.html` beneath the root as its own.",
        covers: &[
            value(
                STATIC_WEB_SERVER,
                "content-type",
                "text/plain; charset=utf-8",
                "text/html; charset=utf-8",
                NOTHING,
            ),
            value(STATIC_WEB_SERVER, "content-length", "there", "18", NOTHING),
            value(STATIC_WEB_SERVER, "the content", "its own", "404.html", NOTHING),
        ],
    },
    Cause {
        title: "Words of errors and redirects",
        why: "A program gets a line of plain text, a browser a page (by `Accept`); nginx and static-web-server have HTML for all, and static-web-server nothing with some.",
        covers: &[
            value(EACH, "content-type", "text/plain; charset=utf-8", "text/html; charset=utf-8", &[]),
            value(NGINX, "content-type", "text/plain; charset=utf-8", "text/html", &[]),
            value(STATIC_WEB_SERVER, "content-type", "text/plain; charset=utf-8", "–", &[]),
            value(STATIC_WEB_SERVER, "content-length", "there", "0", &[]),
            value(STATIC_WEB_SERVER, "content-length", "there", "–", &["HEAD /old"]),
            value(STATIC_WEB_SERVER, "the content", "its own", "empty", &[]),
        ],
    },
    Cause {
        title: "Server",
        why: "It says which program answers, without its version (10.2.4); `headers = { remove = [\"Server\"] }` leaves it out, as static-web-server does.",
        covers: &[value(STATIC_WEB_SERVER, "server", "there", "–", &[])],
    },
];
