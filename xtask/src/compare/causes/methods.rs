//! What is answered to other methods than `GET` and `HEAD`.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, status, value};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "OPTIONS",
        why: "It is answered with what there is: `204` and `Allow` (9.3.7), for `*` too.",
        covers: &[
            status(NGINX, "204", "405", &["OPTIONS /small.txt"]),
            status(NGINX, "204", "400", &["OPTIONS *"]),
            status(STATIC_WEB_SERVER, "204", "404", &["OPTIONS *"]),
            value(
                STATIC_WEB_SERVER,
                "allow",
                "GET, HEAD, OPTIONS",
                "OPTIONS, HEAD, GET",
                &["OPTIONS /small.txt"],
            ),
        ],
    },
    Cause {
        title: "Allow in a 405",
        why: "It has to be there (15.5.6).",
        covers: &[value(EACH, "allow", "GET, HEAD, OPTIONS", "–", &[])],
    },
    Cause {
        title: "Methods that nobody has heard of",
        why: "A method is any token, its case counts (9.1): one that this server doesn't know gets `501`, and so does `CONNECT`, which is for proxies; one that \
              it knows and files haven't gets `405` (15.5.6, 15.6.2).",
        covers: &[
            status(NGINX, "501", "405", &["BREW "]),
            status(NGINX, "501", "400", &["get /small.txt", "CONNECT "]),
            status(STATIC_WEB_SERVER, "501", "405", &["BREW ", "get /small.txt", "CONNECT "]),
        ],
    },
    Cause {
        title: "POST to what is no file",
        why: "Files and folders take no `POST`, there or not: nothing is looked for, and nobody is sent elsewhere to be refused there. A redirect of the site is for \
              every method.",
        covers: &[
            status(NGINX, "405", "404", &["POST /none"]),
            status(NGINX, "405", "403", &["list: POST /"]),
            status(NGINX, "405", "301", &["POST /folder"]),
            status(NGINX, "405", "308", &["clean: POST /about.html"]),
            status(STATIC_WEB_SERVER, "301", "405", &["POST /old"]),
        ],
    },
];
