//! Conditions and ranges (RFC 9110 sections 13 and 14).

use super::case::{Case, ask, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "conditions on the version that a client has",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            get("/f.txt", 200).has(&[("ETag", "*"), ("Last-Modified", "*"), ("Accept-Ranges", "bytes")]),
            get("/f.txt", 304).with(&["If-None-Match: {etag}"]).has(&[("ETag", "{etag}")]),
            get("/f.txt", 304).with(&["If-None-Match: \"x\", W/{etag}"]),
            get("/f.txt", 304).with(&["If-None-Match: *"]),
            get("/f.txt", 304).with(&["If-Modified-Since: {modified}"]),
            get("/f.txt", 200).with(&["If-None-Match: \"x\"", "If-Modified-Since: {modified}"]).is("content"),
            get("/f.txt", 200).with(&["If-Match: {etag}"]).is("content"),
            get("/f.txt", 200).with(&["If-Match: *"]).is("content"),
            get("/f.txt", 412).with(&["If-Match: \"x\""]),
            // A weak tag never matches strongly.
            get("/f.txt", 200).has(&[("ETag", "*")]),
            get("/f.txt", 412).with(&["If-Match: W/{etag}"]),
            get("/f.txt", 200).with(&["If-Unmodified-Since: {modified}"]).is("content"),
            get("/f.txt", 412).with(&["If-Unmodified-Since: Thu, 01 Jan 1998 00:00:00 GMT"]),
            get("/f.txt", 200).with(&["If-Modified-Since: Thu, 01 Jan 1998 00:00:00 GMT"]).is("content"),
            ask("HEAD", "/f.txt", 412).with(&["If-Match: \"x\""]),
        ],
    },
    Case {
        about: "parts of a file",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            get("/f.txt", 206).with(&["Range: bytes=0-2"]).has(&[("Content-Range", "bytes 0-2/7")]).is("con"),
            get("/f.txt", 206).with(&["Range: bytes=-2"]).is("nt"),
            get("/f.txt", 206).with(&["Range: bytes=5-"]).is("nt"),
            get("/f.txt", 416).with(&["Range: bytes=7-"]).has(&[("Content-Range", "bytes */7")]),
            get("/f.txt", 206).with(&["Range: bytes=0-0,6-6"]).holds(&["bytes 0-0/7", "bytes 6-6/7"]),
            get("/f.txt", 200).with(&["Range: lines=1-2"]).is("content"),
            get("/f.txt", 200).has(&[("ETag", "*")]),
            get("/f.txt", 206).with(&["Range: bytes=0-2", "If-Range: {etag}"]).is("con"),
            get("/f.txt", 200).with(&["Range: bytes=0-2", "If-Range: \"x\""]).is("content"),
            get("/f.txt", 304).with(&["Range: bytes=0-2", "If-None-Match: {etag}"]),
        ],
    },
];
