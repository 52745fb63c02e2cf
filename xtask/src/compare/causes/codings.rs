//! Which form of a file is sent: codings and their weights.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, value};

const WEIGHTS: &[&str] = &["identity, gzip;q=0.5", "gzip;q=0$", "gzip;q=2$"];
const ANY: &[&str] = &["Accept-Encoding: *$", "Accept-Encoding: x-gzip"];
const DEFLATE: &[&str] = &["Accept-Encoding: deflate"];
const BOTH: &[&str] = &["GET /both.css"];

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "Weights in Accept-Encoding",
        why: "Of what is acceptable the one of the highest weight is sent, and what has the weight 0, or one that is none (12.4.2), isn't acceptable (12.5.3).",
        covers: &[
            value(EACH, "content-encoding", "–", "gzip", WEIGHTS),
            value(NGINX, "content-length", "63", "16", WEIGHTS),
            value(EACH, "the content", "packed.txt", "packed.txt.gz", WEIGHTS),
        ],
    },
    Cause {
        title: "Other words for gzip",
        why: "`*` is every coding that isn't named (12.5.3), `x-gzip` is `gzip` (8.4.1.3).",
        covers: &[
            value(EACH, "content-encoding", "gzip", "–", ANY),
            value(EACH, "content-length", "16", "63", ANY),
            value(EACH, "the content", "packed.txt.gz", "packed.txt", ANY),
        ],
    },
    Cause {
        title: "gzip sent as deflate",
        why: "Who accepts `deflate` alone gets the file as it is: there is no sibling in that coding. static-web-server sends the bytes of `.gz` under the name of `deflate`, \
              which clients can't read (8.4.1.2).",
        covers: &[
            value(STATIC_WEB_SERVER, "content-encoding", "–", "deflate", DEFLATE),
            value(STATIC_WEB_SERVER, "the content", "packed.txt", "packed.txt.gz", DEFLATE),
        ],
    },
    Cause {
        title: "Brotli",
        why: "Between codings that are liked as well `precompressed` decides, and `br` goes first; nginx has no brotli without a module of others.",
        covers: &[
            value(NGINX, "content-encoding", "br", "gzip", BOTH),
            value(NGINX, "content-length", "18", "21", BOTH),
            value(NGINX, "the content", "both.css.br", "both.css.gz", BOTH),
            value(NGINX, "content-encoding", "br", "–", BOTH),
            value(NGINX, "content-length", "18", "63", BOTH),
            value(NGINX, "the content", "both.css.br", "both.css", BOTH),
        ],
    },
    Cause {
        title: "The length of a coded file",
        why: "It is known, so it is told (8.6): the client can show how far it is. static-web-server sends siblings in chunks.",
        covers: &[
            value(STATIC_WEB_SERVER, "content-length", "*", "–", &["Accept-Encoding: "]),
            value(STATIC_WEB_SERVER, "transfer-encoding", "–", "chunked", &["Accept-Encoding: "]),
        ],
    },
];
