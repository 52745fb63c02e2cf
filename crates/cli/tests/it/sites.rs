//! Sites of a configuration, as the program serves them: for each key of `[[site]]`, `[[site.route]]` and `[[site.redirect]]` a request that
//! shows its effect, on each driver.

use crate::client::Answer;
use crate::folder::Temporary;
use crate::process::{Serving, program, run};

/// A request and what its answer has to be. Fields of the request are whole lines; of the answer: name and value, none where the value is empty.
struct Case {
    about: &'static str,
    config: &'static str,
    asks: &'static [Ask],
}

struct Ask {
    target: &'static str,
    fields: &'static [&'static str],
    status: u16,
    has: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const fn ask(target: &'static str, status: u16, body: &'static str) -> Ask {
    Ask { target, fields: &[], status, has: &[], body }
}

const fn ask_with(
    target: &'static str,
    fields: &'static [&'static str],
    status: u16,
    has: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> Ask {
    Ask { target, fields, status, has, body }
}

const CASES: &[Case] = &[
    Case {
        about: "hosts: exact, with a star, and the one without",
        config: "[[site]]\nroot = \"www\"\n[[site]]\nhosts = [\"a.test\", \"*.b.test\"]\nroot = \"other\"\n",
        asks: &[
            ask("/", 200, "index"),
            ask("http://a.test/", 200, "other"),
            ask("http://x.y.B.test:80/", 200, "other"),
            ask("http://b.test/", 200, "index"),
        ],
    },
    Case {
        about: "index",
        config: "[[site]]\nroot = \"www\"\nindex = [\"none.html\", \"home.html\"]\n",
        asks: &[ask("/", 200, "home"), ask("/about/", 404, "Not Found\n")],
    },
    Case {
        about: "try_files",
        config: "[[site]]\nroot = \"www\"\ntry_files = [\"{path}\", \"{path}.html\", \"/home.html\"]\n",
        asks: &[ask("/f.txt", 200, "content"), ask("/about", 200, "about"), ask("/none", 200, "home")],
    },
    Case {
        about: "spa",
        config: "[[site]]\nroot = \"www\"\nspa = \"/index.html\"\n",
        asks: &[ask("/some/page", 200, "index"), ask("/none.js", 404, "Not Found\n")],
    },
    Case {
        about: "clean_urls",
        config: "[[site]]\nroot = \"www\"\nclean_urls = true\n",
        asks: &[
            ask("/about", 200, "about"),
            ask_with("/about.html?q", &[], 308, &[("Location", "/about?q")], ""),
        ],
    },
    Case {
        about: "hidden",
        config: "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/open/*\"\nhidden = \"serve\"\n",
        asks: &[
            ask("/.secret", 404, "Not Found\n"),
            ask("/.well-known/x", 200, "known"),
            ask("/open/.secret", 200, "open secret"),
        ],
    },
    Case {
        about: "symlinks",
        config: "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/link.txt\"\nsymlinks = \"deny\"\n",
        asks: &[ask("/same.txt", 200, "content"), ask("/link.txt", 403, "Forbidden\n")],
    },
    Case {
        about: "listing",
        config: "[[site]]\nroot = \"www\"\nlisting = true\n",
        asks: &[ask_with(
            "/open/",
            &["Accept: application/json"],
            200,
            &[("Content-Type", "application/json")],
            "",
        )],
    },
    Case {
        about: "precompressed",
        config: "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/packed.txt\"\nprecompressed = []\n",
        asks: &[
            ask_with(
                "/also.txt",
                &["Accept-Encoding: gzip"],
                200,
                &[("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")],
                "packed",
            ),
            ask_with(
                "/packed.txt",
                &["Accept-Encoding: gzip"],
                200,
                &[("Content-Encoding", ""), ("Vary", "")],
                "plain",
            ),
        ],
    },
    Case {
        about: "mime and cache_control",
        config: "[[site]]\nroot = \"www\"\nmime = { txt = \"text/x-note\" }\ncache_control = [{ path = \"/f.txt\", value = \"no-store\" }, { type = \"text/*\", value = \"max-age=60\" }]\n",
        asks: &[
            ask_with(
                "/f.txt",
                &[],
                200,
                &[("Content-Type", "text/x-note; charset=utf-8"), ("Cache-Control", "no-store")],
                "content",
            ),
            ask_with("/about.html", &[], 200, &[("Cache-Control", "max-age=60")], "about"),
        ],
    },
    Case {
        about: "error pages and headers, of a site and of a route",
        config: "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/home.html\" }\nheaders = { set = { X-Frame-Options = \"DENY\" } }\n[[site.route]]\npath = \"/open/*\"\nheaders = { set = { X-Open = \"yes\" }, remove = [\"X-Frame-Options\"] }\nerror_pages = { 404 = \"/about.html\" }\n",
        asks: &[
            ask_with("/none", &[], 404, &[("X-Frame-Options", "DENY"), ("X-Open", "")], "home"),
            ask_with("/open/none", &[], 404, &[("X-Frame-Options", ""), ("X-Open", "yes")], "about"),
        ],
    },
    Case {
        about: "redirects go before routes, the longer path before the shorter",
        config: "[[site]]\nroot = \"www\"\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/new/{rest}\"\n[[site.redirect]]\nfrom = \"/gone\"\nto = \"https://b.test/\"\nstatus = 302\n[[site.route]]\npath = \"/old/but/*\"\nrespond = { status = 200, type = \"text/plain\", body = \"kept\" }\n",
        asks: &[
            ask_with("/old/a/b?c=d", &[], 308, &[("Location", "/new/a/b?c=d")], ""),
            ask_with("/gone", &[], 302, &[("Location", "https://b.test/")], ""),
            ask("/old/but/this", 200, "kept"),
        ],
    },
    Case {
        about: "a route answers by itself",
        config: "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/health\"\nrespond = { status = 200, type = \"text/plain\", body = \"fine\\n\" }\n",
        asks: &[
            ask_with("/health", &[], 200, &[("Content-Type", "text/plain")], "fine\n"),
            ask("/health/x", 404, "Not Found\n"),
        ],
    },
];

fn folder(config: &str) -> Temporary {
    let folder = Temporary::new();
    folder
        .file("www/index.html", "index")
        .file("www/home.html", "home")
        .file("www/about.html", "about")
        .file("www/f.txt", "content")
        .file("www/.secret", "secret")
        .file("www/.well-known/x", "known")
        .file("www/open/.secret", "open secret")
        .file("www/packed.txt", "plain")
        .file("www/packed.txt.gz", "packed")
        .file("www/also.txt", "plain")
        .file("www/also.txt.gz", "packed")
        .file("other/index.html", "other")
        .file("site.toml", config);
    for link in ["same.txt", "link.txt"] {
        std::os::unix::fs::symlink("f.txt", folder.path().join("www").join(link)).expect("a link");
    }
    folder
}

fn check(about: &str, ask: &Ask, answer: &Answer) {
    let shown = format!("{about}: {} {:?}: {answer:?}", ask.target, ask.fields);
    assert_eq!(answer.status, ask.status, "{shown}");
    for (name, value) in ask.has {
        assert_eq!(answer.field(name).unwrap_or_default(), *value, "{name}: {shown}");
    }
    if !ask.body.is_empty() {
        assert_eq!(answer.text(), ask.body, "{shown}");
    }
}

#[test]
fn each_key_has_its_effect() {
    for case in CASES {
        let folder = folder(case.config);
        for driver in ["epoll", "kqueue", "uring"] {
            let arguments = ["--config", "site.toml", "--driver", driver, "--workers", "1"];
            let started =
                Serving::try_start(program(folder.path(), &arguments).args(["--listen", "127.0.0.1:0"]));
            let serving = match started {
                Ok(serving) => serving,
                Err((_, said)) if said.contains("isn't there") => continue,
                Err(ended) => panic!("{}: {driver}: {ended:?}", case.about),
            };
            let mut client = serving.connect();
            // Twice: found, and known.
            for ask in case.asks.iter().chain(case.asks) {
                check(case.about, ask, &client.request("GET", ask.target, ask.fields));
            }
        }
    }
}

#[test]
fn what_sites_can_not_mean_is_told_with_its_place() {
    for (config, told) in [
        ("[[site]]\nroot = \"none\"\n", "site.toml:2:8: site[0].root: there is no folder "),
        ("[[site]]\nroot = \"www\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/a\"\n", "site.toml:"),
        ("[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/a/\" }\n", "site.toml:3:"),
    ] {
        let folder = folder(config);
        let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{config}");
        assert!(stderr.starts_with(told), "{stderr}");
    }
}

#[test]
fn a_socket_of_the_file_system_and_handing_out_are_as_the_file_says() {
    let folder = folder(
        "[server]\naccept = \"dispatch\"\nworkers = 2\n[[listen]]\naddress = \"unix:PLACE\"\nmode = \"0600\"\n[[site]]\nroot = \"www\"\n",
    );
    let socket = folder.path().join("here.sock");
    let text = std::fs::read_to_string(folder.path().join("site.toml")).expect("it was written");
    folder.file("site.toml", text.replace("PLACE", &socket.display().to_string()));
    let serving = Serving::of(&mut program(folder.path(), &["--config", "site.toml"]));
    assert_eq!(serving.line("accept"), Some("dispatch"));
    assert_eq!(serving.line("socket"), Some(socket.display().to_string().as_str()));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&socket).expect("it is there").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("connects");
    std::io::Write::write_all(&mut stream, b"GET /f.txt HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\ncontent"), "{answer}");
    drop(serving);
}
