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
        about: "links whose target is beneath the root are followed, absolute links too",
        keys: &["site.symlinks"],
        hosts: &[],
        lines: "root = \"www\"\nsymlinks = \"inside\"\nlisting = true\nindex = []\n",
        asks: &[
            get("/same.txt", 200).is("content"),
            get("/absolute.txt", 200).is("content"),
            get("/absolute-folder/a%20b.txt", 200).is("spaced"),
            get("/out.txt", 403),
            get("/absolute-out.txt", 403),
            get("/links/", 200).holds(&["./absolute.txt"]),
        ],
    },
    Case {
        about: "links are not there where that is said",
        keys: &["site.symlinks"],
        hosts: &[],
        lines: "root = \"www\"\nsymlinks = \"never\"\n",
        asks: &[
            get("/same.txt", 404),
            get("/absolute.txt", 404),
            get("/absolute-folder/a%20b.txt", 404),
            get("/out.txt", 404),
            get("/absolute-out.txt", 404),
            get("/f.txt", 200).is("content"),
        ],
    },
    Case {
        about: "follow: every link is followed, but no path of a request leaves the root",
        keys: &["site.symlinks"],
        hosts: &[],
        lines: "root = \"www\"\nsymlinks = \"follow\"\n",
        asks: &[
            get("/same.txt", 200).is("content"),
            get("/absolute.txt", 200).is("content"),
            get("/out.txt", 200).is("other content"),
            get("/absolute-out.txt", 200).is("other content"),
            get("/absolute-folder/a%20b.txt", 200).is("spaced"),
            get("/../other/f.txt", 400),
            get("/%2e%2e/other/f.txt", 400),
            get("/open/../../other/f.txt", 400),
            get("/..%2fother%2ff.txt", 404),
        ],
    },
];
