//! Which file answers for a path: index, `try_files`, the page of a program of one page, clean URLs.

use super::case::{Case, ask, get};

const BROWSER: &[&str] = &["Accept: text/html,application/xhtml+xml,*/*;q=0.8"];

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a folder is redirected to its name with a slash; queries and percent signs mean what they should",
        keys: &[],
        hosts: &[],
        lines: "root = \"www\"\n",
        asks: &[
            get("/docs?a=/b", 301).has(&[("Location", "/docs/?a=/b")]),
            get("/docs/", 200).is("docs"),
            get("/f.txt?v=1", 200).is("content"),
            get("/100%25.txt", 200).is("percent"),
            get("/100%2525.txt", 404),
            get("/open/a%20b.txt", 200).is("spaced"),
            // Clients resolve dots before they ask.
            get("/open/../f.txt", 400),
            get("/%2e%2e/other/f.txt", 400),
            get("/f.txt/", 404),
        ],
    },
    Case {
        about: "the first of several names that a folder has is its index",
        keys: &["site.index"],
        hosts: &[],
        lines: "root = \"www\"\nindex = [\"none.html\", \"home.html\"]\n",
        asks: &[get("/", 200).is("home"), get("/docs/", 200).is("docs home"), get("/open/", 404)],
    },
    Case {
        about: "what is tried for a path, in its order, with a file as the last",
        keys: &["site.try_files"],
        hosts: &[],
        lines: "root = \"www\"\ntry_files = [\"{path}\", \"{path}.html\", \"/home.html\"]\n",
        asks: &[
            get("/f.txt", 200).is("content"),
            get("/about", 200).is("about"),
            get("/none", 200).is("home"),
        ],
    },
    Case {
        about: "what is tried for a path, with a status as the last",
        keys: &["site.try_files"],
        hosts: &[],
        lines: "root = \"www\"\ntry_files = [\"{path}.html\", \"=410\"]\n",
        asks: &[get("/about", 200).is("about"), get("/f.txt", 410)],
    },
    Case {
        about: "paths of certain files are read as those of requests, once",
        keys: &["site.spa", "site.error_pages"],
        hosts: &[],
        lines: "root = \"www\"\nspa = \"/not%20found.html\"\nerror_pages = { 404 = \"/a%2520b.html\" }\n\
                [[site.route]]\npath = \"/open/*\"\ntry_files = [\"{path}\", \"{path}%2520b.html\", \"/not%20found.html\"]\n\
                [[site.route]]\npath = \"/a\"\ntry_files = [\"{path}%2520b.html\"]\n",
        asks: &[
            get("/none", 200).is("spaced page"),
            get("/none.js", 404).is("page of a percent sign"),
            get("/open/none", 200).is("spaced page"),
            get("/a", 200).is("page of a percent sign"),
        ],
    },
    Case {
        about: "a program of one page answers where somebody navigates, and for no missing script",
        keys: &["site.spa"],
        hosts: &[],
        lines: "root = \"www\"\nspa = \"/index.html\"\n",
        asks: &[
            get("/some/page", 200).is("index"),
            get("/version/1.2", 200).with(BROWSER).is("index"),
            get("/none.js", 404),
            get("/f.txt", 200).is("content"),
            ask("HEAD", "/some/page", 200),
            ask("POST", "/some/page", 405),
        ],
    },
    Case {
        about: "clean URLs: a page has one path, without its extension",
        keys: &["site.clean_urls"],
        hosts: &[],
        lines: "root = \"www\"\nclean_urls = true\n",
        asks: &[
            get("/about", 200).is("about"),
            get("/about.html?q", 308).has(&[("Location", "/about?q")]),
            get("/about/", 308).has(&[("Location", "/about")]),
            get("/docs/index.html", 308).has(&[("Location", "/docs/")]),
            get("/f.txt", 200).is("content"),
        ],
    },
];
