//! Files that lie ready in a coding: which is sent, and what `Vary`, `ETag`, ranges and conditions are about then.

use super::case::{Case, ask, get};

const GZIP: &[(&str, &str)] = &[("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")];
const PLAIN: &[(&str, &str)] = &[("Content-Encoding", ""), ("Vary", "Accept-Encoding")];

pub(super) const CASES: &[Case] = &[
    Case {
        about: "the coding that is liked best is sent; the first that is named, where two are liked as much",
        keys: &["site.precompressed"],
        hosts: &[],
        lines: "root = \"www\"\nprecompressed = [\"zstd\", \"gzip\", \"br\"]\n",
        asks: &[
            get("/data.txt", 200).has(PLAIN).is("0123456789"),
            get("/data.txt", 200).with(&["Accept-Encoding: gzip"]).has(GZIP).is("gzipped"),
            get("/data.txt", 200).with(&["Accept-Encoding: br, gzip, zstd"]).is("zstandard"),
            get("/data.txt", 200).with(&["Accept-Encoding: br;q=0.9, gzip;q=0.8"]).is("brotli"),
            get("/data.txt", 200).with(&["Accept-Encoding: br;q=0, *"]).is("zstandard"),
            get("/data.txt", 200).with(&["Accept-Encoding: gzip;q=0.1, identity"]).is("0123456789"),
            get("/data.txt", 200).with(&["Accept-Encoding: x-gzip"]).is("gzipped"),
            get("/data.txt", 200).with(&["Accept-Encoding: deflate"]).has(PLAIN).is("0123456789"),
            ask("HEAD", "/data.txt", 200)
                .with(&["Accept-Encoding: gzip"])
                .has(GZIP)
                .has(&[("Content-Length", "7")]),
        ],
    },
    Case {
        about: "only codings that are named are looked for",
        keys: &["site.precompressed"],
        hosts: &[],
        lines: "root = \"www\"\nprecompressed = [\"gzip\"]\n",
        asks: &[
            get("/data.txt", 200).with(&["Accept-Encoding: br, zstd"]).is("0123456789"),
            get("/data.txt", 200).with(&["Accept-Encoding: br, gzip;q=0.1"]).is("gzipped"),
            get("/data.txt", 200).with(&["Accept-Encoding: br, identity;q=0.1, gzip;q=0.2"]).is("gzipped"),
        ],
    },
    Case {
        about: "each coding has its own entity tag, and conditions and ranges are about what is sent",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            get("/data.txt", 200).with(&["Accept-Encoding: gzip"]).has(&[("ETag", "*")]),
            get("/data.txt", 304).with(&["Accept-Encoding: gzip", "If-None-Match: {etag}"]),
            get("/data.txt", 200).with(&["Accept-Encoding: gzip"]).has(&[("ETag", "{etag}")]),
            get("/data.txt", 200).with(&["If-None-Match: {etag}"]).has(&[("ETag", "not {etag}")]),
            get("/data.txt", 200).with(&["Accept-Encoding: br", "If-None-Match: {etag}"]).is("brotli"),
            get("/data.txt", 206)
                .with(&["Accept-Encoding: br", "Range: bytes=1-3", "If-Range: {etag}"])
                .has(&[("Content-Range", "bytes 1-3/6"), ("Content-Encoding", "br")])
                .is("rot"),
            get("/data.txt", 200)
                .with(&["Accept-Encoding: gzip", "Range: bytes=1-3", "If-Range: {etag}"])
                .is("gzipped"),
            get("/data.txt", 412).with(&["Accept-Encoding: br", "If-Match: {etag}"]),
        ],
    },
];
