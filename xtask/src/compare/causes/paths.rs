//! Which file a path is answered with.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, status};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "Dot segments",
        why: "Clients take `.` and `..` out of a path before they send it (RFC 3986, 5.2.4). What still has them is a program that was told to, and mostly one that \
              looks for a way out of the folder: `400`, and nothing is looked for. nginx resolves them, which is as right and kinder to odd clients.",
        covers: &[
            status(NGINX, "400", "200", &["GET /./", "GET /folder/../", "GET /folder/.$", "GET /folder/..$"]),
            status(STATIC_WEB_SERVER, "400", "200", &["GET /./"]),
            status(STATIC_WEB_SERVER, "400", "308", &["GET /folder/.$", "GET /folder/..$"]),
            status(STATIC_WEB_SERVER, "400", "404", &["GET /folder/../", "GET /../", "GET /%2e%2e/"]),
        ],
    },
    Cause {
        title: "An encoded slash",
        why: "`%2F` is a byte of a name and no delimiter (RFC 3986, 2.2), and no file has it in its name: `404`. To take it for a slash makes one \
              address of two, and has led around the rules of many a server.",
        covers: &[
            status(NGINX, "404", "200", &["%2f", "GET /%2F"]),
            status(STATIC_WEB_SERVER, "404", "308", &["GET /%2F"]),
            status(STATIC_WEB_SERVER, "404", "200", &["/folder%2findex.html"]),
        ],
    },
    Cause {
        title: "Targets that are none",
        why: "A target that the grammar doesn't have should get `400` and not be mended (RFC 9112, 3): bytes beyond ASCII, a fragment, a percent sign without its \
              digits, a path without its slash.",
        covers: &[
            status(NGINX, "400", "200", &["/ü.txt", "#part"]),
            status(STATIC_WEB_SERVER, "400", "200", &["/100%.txt", "#part"]),
            status(STATIC_WEB_SERVER, "400", "404", &["/small%ZZ"]),
            status(STATIC_WEB_SERVER, "400", "308", &["GET small.txt"]),
        ],
    },
    Cause {
        title: "An encoded NUL",
        why: "As a target it is right, and no file has such a name: `404`. `400` says as much to the one who tries it.",
        covers: &[status(NGINX, "404", "400", &["%00"])],
    },
    Cause {
        title: "A slash behind a file's name",
        why: "A file is no folder. Answered all the same, relative links in it would lead elsewhere, and each page would have a second address.",
        covers: &[status(STATIC_WEB_SERVER, "404", "200", &["/small.txt/"])],
    },
    Cause {
        title: "A folder without an index",
        why: "Nothing is served at this address: `404`, which also hides that the folder is there (15.5.4 allows either).",
        covers: &[status(NGINX, "404", "403", &["plain: GET /bare/"])],
    },
    Cause {
        title: "The slash behind a folder's name",
        why: "Both are for good. Only `GET` and `HEAD` come here, which `301` leaves as they are (15.4.2), and every client knows it; nginx has it too.",
        covers: &[status(STATIC_WEB_SERVER, "301", "308", &["/folder", "/bare"])],
    },
    Cause {
        title: "Symbolic links",
        why: "A link is followed where it stays beneath the root, which the kernel watches over; one that leads out is `403`. nginx knows the owner of a link, or none \
              at all, and sends the file from outside; static-web-server refuses both.",
        covers: &[
            status(NGINX, "403", "200", &["/link-out.txt"]),
            status(STATIC_WEB_SERVER, "403", "404", &["/link-out.txt"]),
            status(STATIC_WEB_SERVER, "200", "403", &["/link-in.txt"]),
        ],
    },
    Cause {
        title: "Well-known addresses",
        why: "Names that begin with a dot are hidden, but `/.well-known/` is there to be asked for (RFC 8615, 3): certificates need it.",
        covers: &[status(STATIC_WEB_SERVER, "200", "404", &["/.well-known/"])],
    },
    Cause {
        title: "What a program of one page answers",
        why: "Its page is for those who go to an address: a name with a dot that nobody asks as `text/html` is a missing file, and a script that is answered with HTML \
              breaks where it can't be seen. A folder without an index is an address as any other, and `HEAD` is answered as `GET` would be (9.3.2).",
        covers: &[
            status(EACH, "404", "200", &["spa: GET /users/john.doe$", "spa: GET /none.js$"]),
            status(NGINX, "200", "403", &["spa: GET /bare/"]),
            status(STATIC_WEB_SERVER, "200", "404", &["spa: HEAD /users/7"]),
        ],
    },
    Cause {
        title: "One address for a page",
        why: "With `clean_urls` the addresses with `.html`, `index.html` or a slash too many lead to the one without. (static-web-server finds `about.html` for \
              `/about`, and has no setting for the way back.)",
        covers: &[
            status(NGINX, "308", "404", &["clean: GET /about/"]),
            status(STATIC_WEB_SERVER, "308", "200", &["clean: "]),
        ],
    },
];
