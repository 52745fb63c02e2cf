//! Conditions and ranges.

use super::{Cause, EACH, NGINX, STATIC_WEB_SERVER, status, value};

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        title: "Tags",
        why: "Each form of a file has an `ETag` of its own, and conditions on it count before those on dates (13.2.2). static-web-server has no tags: what asks by one is \
              sent whole, and what should be kept from it isn't.",
        covers: &[
            status(STATIC_WEB_SERVER, "304", "200", &["If-None-Match"]),
            status(STATIC_WEB_SERVER, "200", "304", &["If-None-Match: \"other\" · If-Modified-Since"]),
            status(STATIC_WEB_SERVER, "412", "200", &["If-Match: \"other\"", "If-Match: W/TAG"]),
            status(STATIC_WEB_SERVER, "304", "206", &["If-None-Match"]),
            value(STATIC_WEB_SERVER, "etag", "strong", "–", &[]),
        ],
    },
    Cause {
        title: "If-Modified-Since with a later date",
        why: "It isn't newer than that: `304` (13.1.3). nginx compares for equality, unless it is told otherwise (`if_modified_since before`).",
        covers: &[status(NGINX, "304", "200", &["If-Modified-Since: Mon, 07 Nov"])],
    },
    Cause {
        title: "If-Range with a date that somebody has set",
        why: "A strong date is asked for (13.1.5). These files were dated back to 1994 a moment ago, so another version may have had that date (8.8.2.2): the whole file is \
              sent. For one whose date was not touched it is `206`, as there.",
        covers: &[status(EACH, "200", "206", &["If-Range: DATE"])],
    },
    Cause {
        title: "Range in a HEAD",
        why: "It is defined for `GET` alone (14.2), and `HEAD` ignores it.",
        covers: &[status(EACH, "200", "206", &["HEAD /small.txt · Range"])],
    },
    Cause {
        title: "A Range that is none",
        why: "It ends before it begins. An invalid `Range` may be ignored or be refused (14.2): the file is of more use than `416`.",
        covers: &[status(EACH, "200", "416", &["Range: bytes=3-1"])],
    },
    Cause {
        title: "A range of an empty file",
        why: "There is none that could be sent, and the file is: nginx does so too.",
        covers: &[status(STATIC_WEB_SERVER, "200", "416", &["GET /empty.txt · Range"])],
    },
    Cause {
        title: "Several ranges",
        why: "Each that was asked for is sent, as `multipart/byteranges` (14.6); static-web-server sends the first, which is allowed (15.3.7).",
        covers: &[
            value(STATIC_WEB_SERVER, "content-length", "there", "2", &["bytes=0-1,4-5"]),
            value(STATIC_WEB_SERVER, "content-range", "–", "bytes 0-1/17", &["bytes=0-1,4-5"]),
            value(
                STATIC_WEB_SERVER,
                "content-type",
                "multipart/byteranges",
                "text/plain; charset=utf-8",
                &["bytes=0-1,4-5"],
            ),
            value(STATIC_WEB_SERVER, "the content", "its own", "\"01\"", &["bytes=0-1,4-5"]),
        ],
    },
    Cause {
        title: "A range of a file in gzip",
        why: "Ranges are of the form that is selected (14.2), and its strong tag makes them safe. nginx has no ranges of ready-made siblings.",
        covers: &[status(NGINX, "206", "200", &["Accept-Encoding: gzip · Range"])],
    },
    Cause {
        title: "Accept-Ranges",
        why: "It says that ranges of this resource can be had (14.3): in parts and in coded forms too, where nginx leaves it out, and not with errors, where \
              static-web-server has it.",
        covers: &[
            value(NGINX, "accept-ranges", "bytes", "–", &["Range: ", "Accept-Encoding: "]),
            value(STATIC_WEB_SERVER, "accept-ranges", "–", "bytes", &[]),
        ],
    },
    Cause {
        title: "Validators in refusals",
        why: "`412` and `416` say which version is there (15.5.13 and 15.5.17 leave it open), so that the client needs no further request to know.",
        covers: &[
            value(NGINX, "etag", "strong", "–", &["If-Match: ", "If-Unmodified-Since: ", "Range: bytes=99-"]),
            value(
                NGINX,
                "last-modified",
                "there",
                "–",
                &["If-Match: ", "If-Unmodified-Since: ", "Range: bytes=99-"],
            ),
            value(
                STATIC_WEB_SERVER,
                "last-modified",
                "there",
                "–",
                &["If-Unmodified-Since: ", "Range: bytes=99-"],
            ),
        ],
    },
    Cause {
        title: "Last-Modified in a 304",
        why: "As nginx has it. RFC 9110 asks for it only where there is no tag (15.4.5): static-web-server, which has none, would need it more.",
        covers: &[value(STATIC_WEB_SERVER, "last-modified", "there", "–", &["If-Modified-Since: "])],
    },
    Cause {
        title: "The date of a one-page program's page",
        why: "It is a file like any other, so a reload costs a `304`.",
        covers: &[value(STATIC_WEB_SERVER, "last-modified", "there", "–", &["spa: "])],
    },
    Cause {
        title: "Validators of an error page",
        why: "The page stands for what isn't there, and has no version of that: no tag. nginx sends the page's own.",
        covers: &[value(NGINX, "etag", "–", "strong", &[])],
    },
];
