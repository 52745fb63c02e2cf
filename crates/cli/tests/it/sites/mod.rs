//! Sites of a configuration, as the program serves them: for each feature, and for each key of `[[site]]`, `[[site.route]]` and
//! `[[site.redirect]]`, requests that show its effect.
//!
//! All cases are sites of one server, each with a host name of its own, so that none can lean on another.

mod case;
mod codings;
mod conditions;
mod errors;
mod finding;
mod hosts;
mod listings;
mod policies;
mod redirects;
mod replies;
mod routes;

use crate::drivers::drivers;
use crate::folder::Temporary;
use crate::process::{Serving, just};
use case::Case;

/// All cases.
fn cases() -> impl Iterator<Item = &'static Case> {
    let of_files = [
        codings::CASES,
        conditions::CASES,
        errors::CASES,
        finding::CASES,
        hosts::CASES,
        listings::CASES,
        policies::CASES,
        redirects::CASES,
        replies::CASES,
        routes::CASES,
    ];
    of_files.into_iter().flatten()
}

/// The keys whose effect they show.
pub(crate) fn keys_shown() -> impl Iterator<Item = &'static str> {
    cases().flat_map(|case| case.keys).copied()
}

/// Ways to serve that make no difference to an answer: out of memory, out of files, handed round.
const SETTINGS: &[&str] = &[
    "[server]\nworkers = 1\n",
    "[server]\nworkers = 1\n[cache]\nenabled = false\n",
    "[server]\nworkers = 2\naccept = \"dispatch\"\n[cache]\nfile_bytes_max = 6\nentries_max = 2\n",
];

/// What all sites serve, and the configuration with a site for each case.
fn folder(settings: &str) -> Temporary {
    let folder = Temporary::new();
    for (name, content) in [
        ("index.html", "index"),
        ("home.html", "home"),
        ("about.html", "about"),
        ("f.txt", "content"),
        ("100%.txt", "percent"),
        (".secret", "secret"),
        (".well-known/x", "known"),
        ("not found.html", "spaced page"),
        ("a%20b.html", "page of a percent sign"),
        ("open/.secret", "open secret"),
        ("open/a b.txt", "spaced"),
        ("docs/index.html", "docs"),
        ("docs/home.html", "docs home"),
        ("data.txt", "0123456789"),
        ("data.txt.br", "brotli"),
        ("data.txt.zst", "zstandard"),
        ("data.txt.gz", "gzipped"),
        ("plain.txt", "plain"),
        ("plain.txt.gz", "packed"),
        ("app.js", "js"),
        ("page.foo", "foo"),
    ] {
        folder.file(&format!("www/{name}"), content);
        // Of what was written just now tags are weak, where nothing is kept in memory.
        folder.modified(&format!("www/{name}"), 1_000_000_000);
    }
    folder.file("other/index.html", "other").file("other/f.txt", "other content");
    folder.file("www/links/f.txt", "content");
    for (link, target) in [
        ("same.txt", "f.txt".into()),
        ("out.txt", "../other/f.txt".into()),
        ("absolute.txt", folder.path().join("www/f.txt")),
        ("links/absolute.txt", folder.path().join("www/f.txt")),
        ("absolute-folder", folder.path().join("www/open")),
        ("absolute-out.txt", folder.path().join("other/f.txt")),
    ] {
        std::os::unix::fs::symlink(target, folder.path().join("www").join(link)).expect("a link");
    }
    let sites: String = cases().enumerate().map(|(number, case)| case.site(number)).collect();
    folder.file("site.toml", format!("{settings}\n[[site]]\nroot = \"www\"\n{sites}"));
    folder
}

#[test]
fn each_is_served_as_it_says() {
    for settings in SETTINGS {
        let folder = folder(settings);
        for driver in drivers() {
            println!("{driver}: {settings}");
            let arguments = ["--config", "site.toml", "--driver", driver, "--listen", "127.0.0.1:0"];
            let serving = Serving::of(&mut just(folder.path(), &arguments));
            for (number, case) in cases().enumerate() {
                // Twice: found, and known.
                let mut client = serving.connect();
                for _ in 0..2 {
                    case.check(number, &mut client, driver);
                }
            }
        }
    }
}

/// A case that says it shows a key has it.
#[test]
fn each_has_the_keys_that_it_shows() {
    for case in cases() {
        for key in case.keys {
            let name = key.rsplit('.').next().expect("a name");
            let is_there = case.lines.contains(name) || (name == "hosts" && !case.hosts.is_empty());
            assert!(is_there, "{}: {key}", case.about);
            assert!(
                !key.starts_with("site.route.") || case.lines.contains("[[site.route]]"),
                "{}",
                case.about
            );
        }
        assert!(!case.asks.is_empty(), "{}", case.about);
    }
}
