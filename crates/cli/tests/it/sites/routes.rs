//! Routes: which one counts, and that each key may differ from the site's.

use super::case::{Case, ask, get};

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an exact path before one with all beneath it, the longer before the shorter, in any order",
        keys: &["site.route.path"],
        hosts: &[],
        lines: "root = \"www\"\n[[site.route]]\npath = \"/a/*\"\nrespond = { body = \"short\" }\n\
                [[site.route]]\npath = \"/a/b/*\"\nrespond = { body = \"long\" }\n\
                [[site.route]]\npath = \"/a/b/c\"\nrespond = { body = \"exact\" }\n",
        asks: &[
            get("/a", 200).is("short"),
            get("/a/x", 200).is("short"),
            get("/a/b", 200).is("long"),
            get("/a/b/x", 200).is("long"),
            get("/a/b/c", 200).is("exact"),
            get("/a//%62/c", 200).is("exact"),
            get("/a/b/c/d", 200).is("long"),
            get("/ab", 404),
            get("/f.txt", 200).is("content"),
        ],
    },
    Case {
        about: "a route answers by itself",
        keys: &["site.route.respond", "respond.status", "respond.type", "respond.body"],
        hosts: &[],
        lines: "root = \"www\"\n[[site.route]]\npath = \"/health\"\nrespond = { status = 203, type = \"text/x-health\", body = \"fine\\n\" }\n\
                [[site.route]]\npath = \"/gone/*\"\nrespond = { status = 410 }\n",
        asks: &[
            get("/health", 203).has(&[("Content-Type", "text/x-health")]).is("fine\n"),
            ask("HEAD", "/health", 203).has(&[("Content-Length", "5")]),
            get("/health/x", 404),
            get("/gone/a/b", 410),
        ],
    },
    Case {
        about: "who has to log in is told how, with an error page too",
        keys: &["respond.status"],
        hosts: &[],
        lines: "root = \"www\"\nerror_pages = { 401 = \"/home.html\" }\n[[site.route]]\npath = \"/closed/*\"\nrespond = { status = 401 }\n\
                headers = { set = { WWW-Authenticate = \"Basic realm=x\" } }\n",
        asks: &[get("/closed/x", 401).has(&[("WWW-Authenticate", "Basic realm=x")]).is("home")],
    },
    Case {
        about: "an answer without content says nothing of one",
        keys: &["respond.status"],
        hosts: &[],
        lines: "[[site.route]]\npath = \"/ping\"\nrespond = { status = 204 }\n[[site.route]]\npath = \"/reset\"\nrespond = { status = 205 }\n\
                [[site.route]]\npath = \"/empty\"\nrespond = {}\n",
        asks: &[
            get("/ping", 204).has(&[("Content-Type", ""), ("Content-Length", "")]).is(""),
            ask("HEAD", "/ping", 204).has(&[("Content-Type", "")]),
            get("/reset", 205).has(&[("Content-Type", ""), ("Content-Length", "0")]).is(""),
            get("/empty", 200).has(&[("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", "0")]),
        ],
    },
    Case {
        about: "a route has another folder, in which its whole path is looked for, and another index",
        keys: &["site.route.root", "site.route.index"],
        hosts: &[],
        lines: "root = \"www\"\n[[site.route]]\npath = \"/f.txt\"\nroot = \"other\"\n[[site.route]]\npath = \"/docs/*\"\nindex = [\"home.html\"]\n",
        asks: &[
            get("/f.txt", 200).is("other content"),
            get("/docs/", 200).is("docs home"),
            get("/", 200).is("index"),
        ],
    },
    Case {
        about: "a route has a fallback of its own, in the place of its site's, or none",
        keys: &["site.route.try_files", "site.route.spa"],
        hosts: &[],
        lines: "root = \"www\"\nspa = \"/index.html\"\n[[site.route]]\npath = \"/api/*\"\nspa = false\n\
                [[site.route]]\npath = \"/docs/*\"\nspa = \"/docs/index.html\"\n\
                [[site.route]]\npath = \"/open/*\"\ntry_files = [\"{path}\", \"/about.html\"]\n",
        asks: &[
            get("/x", 200).is("index"),
            get("/api/x", 404),
            get("/docs/x", 200).is("docs"),
            get("/open/x", 200).is("about"),
        ],
    },
    Case {
        about: "a route differs in which files there are",
        keys: &[
            "site.route.clean_urls",
            "site.route.hidden",
            "site.route.symlinks",
            "site.route.listing",
            "site.route.precompressed",
        ],
        hosts: &[],
        lines: "root = \"www\"\n[[site.route]]\npath = \"/about\"\nclean_urls = true\n\
                [[site.route]]\npath = \"/open/*\"\nhidden = \"serve\"\nlisting = true\n\
                [[site.route]]\npath = \"/same.txt\"\nsymlinks = \"never\"\n\
                [[site.route]]\npath = \"/plain.txt\"\nprecompressed = []\n",
        asks: &[
            get("/about", 200).is("about"),
            get("/home", 404),
            get("/.secret", 404),
            get("/open/.secret", 200).is("open secret"),
            get("/open/", 200).holds(&["a b.txt", ".secret"]),
            get("/same.txt", 404),
            get("/data.txt", 200).with(&["Accept-Encoding: gzip"]).is("gzipped"),
            get("/plain.txt", 200).with(&["Accept-Encoding: gzip"]).has(&[("Vary", "")]).is("plain"),
        ],
    },
    Case {
        about: "a route says other things in its answers; its types, pages and fields add to the site's",
        keys: &[
            "site.route.mime",
            "site.route.cache_control",
            "site.route.headers",
            "site.route.error_pages",
        ],
        hosts: &[],
        lines: "root = \"www\"\nmime = { foo = \"text/x-site\" }\ncache_control = [ { path = \"/*\", value = \"max-age=1\" } ]\n\
                error_pages = { 404 = \"/home.html\", 405 = \"/home.html\" }\nheaders = { set = { X-Site = \"s\", X-Both = \"s\" } }\n\
                [[site.route]]\npath = \"/open/*\"\nmime = { txt = \"text/x-route\" }\ncache_control = [ { path = \"/*\", value = \"max-age=2\" } ]\n\
                error_pages = { 404 = \"/about.html\" }\nheaders = { set = { X-Route = \"r\", X-Both = \"r\" }, remove = [\"X-Site\"] }\n",
        asks: &[
            get("/page.foo", 200).has(&[
                ("Content-Type", "text/x-site; charset=utf-8"),
                ("Cache-Control", "max-age=1"),
                ("X-Site", "s"),
                ("X-Both", "s"),
                ("X-Route", ""),
            ]),
            get("/open/a%20b.txt", 200).has(&[
                ("Content-Type", "text/x-route; charset=utf-8"),
                ("Cache-Control", "max-age=2"),
                ("X-Site", ""),
                ("X-Both", "r"),
                ("X-Route", "r"),
            ]),
            get("/none", 404).is("home"),
            get("/open/none", 404).is("about"),
            ask("DELETE", "/open/none", 405).is("home"),
        ],
    },
];
