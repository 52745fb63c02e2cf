//! Which files there are: hidden names, symbolic links.

use super::case::{Case, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "hidden names are not there, but for /.well-known/",
        keys: &["site.hidden"],
        hosts: &[],
        lines: "root = \"www\"\nhidden = \"deny\"\n",
        asks: &[
            get("/.secret", 404),
            get("/%2Esecret", 404),
            get("/open/.secret", 404),
            get("/.well-known/x", 200).is("known"),
        ],
    },
    Case {
        about: "hidden names are as any other where that is said",
        keys: &["site.hidden"],
        hosts: &[],
        lines: "root = \"www\"\nhidden = \"serve\"\n",
        asks: &[get("/.secret", 200).is("secret"), get("/open/.secret", 200).is("open secret")],
    },
    Case {
        about: "links are followed that stay inside",
        keys: &["site.symlinks"],
        hosts: &[],
        lines: "root = \"www\"\nsymlinks = \"beneath\"\n",
        asks: &[get("/same.txt", 200).is("content"), get("/out.txt", 403)],
    },
    Case {
        about: "links are not there where that is said",
        keys: &["site.symlinks"],
        hosts: &[],
        lines: "root = \"www\"\nsymlinks = \"deny\"\n",
        asks: &[get("/same.txt", 404), get("/out.txt", 404), get("/f.txt", 200).is("content")],
    },
];
