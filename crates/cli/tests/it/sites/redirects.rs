//! Redirects: from where, to where, with which status.

use super::case::{Case, ask, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "all beneath a path, a path alone, another server",
        keys: &["site.redirect.from", "site.redirect.to"],
        hosts: &[],
        lines: "root = \"www\"\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/new/{rest}\"\n\
                [[site.redirect]]\nfrom = \"/f.txt\"\nto = \"https://b.test/x?y\"\n",
        asks: &[
            get("/old/a/b?c=d", 308).has(&[("Location", "/new/a/b?c=d")]),
            get("/old/a%20b", 308).has(&[("Location", "/new/a%20b")]),
            ask("POST", "/old/form", 308).has(&[("Location", "/new/form")]),
            // It comes before a file; a query of its own stays.
            get("/f.txt?q", 308).has(&[("Location", "https://b.test/x?y")]),
            get("/older", 404),
        ],
    },
    Case {
        about: "each status",
        keys: &["site.redirect.status"],
        hosts: &[],
        lines: "[[site.redirect]]\nfrom = \"/1\"\nto = \"/x\"\nstatus = 301\n[[site.redirect]]\nfrom = \"/2\"\nto = \"/x\"\nstatus = 302\n\
                [[site.redirect]]\nfrom = \"/3\"\nto = \"/x\"\nstatus = 303\n[[site.redirect]]\nfrom = \"/7\"\nto = \"/x\"\nstatus = 307\n\
                [[site.redirect]]\nfrom = \"/8\"\nto = \"/x\"\nstatus = 308\n",
        asks: &[
            get("/1", 301).has(&[("Location", "/x")]),
            get("/2", 302).has(&[("Location", "/x")]),
            get("/3", 303).has(&[("Location", "/x")]),
            get("/7", 307).has(&[("Location", "/x")]),
            get("/8", 308).has(&[("Location", "/x")]),
            // A site that only sends elsewhere has nothing else.
            get("/f.txt", 404),
        ],
    },
    Case {
        about: "a redirect before a route of the same path, the longer path before the shorter",
        keys: &["site.redirect.from", "site.route.path"],
        hosts: &[],
        lines: "root = \"www\"\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/new/{rest}\"\n\
                [[site.route]]\npath = \"/old/*\"\nrespond = { body = \"never\" }\n\
                [[site.route]]\npath = \"/old/but/*\"\nrespond = { body = \"kept\" }\n",
        asks: &[get("/old/a", 308), get("/old/but/this", 200).is("kept")],
    },
];
