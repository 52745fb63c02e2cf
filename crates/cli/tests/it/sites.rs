//! Sites of a configuration: the cases of `tests/sites.md`, each a site of one server with a host name of its own.

use std::time::{Duration, UNIX_EPOCH};

use testkit::{ClientResponse, TestClient, TestFolder};

use crate::process::{Server, drivers};

const CASES: &str = include_str!("../sites.md");

/// A site and its exchanges.
struct Case {
    title: &'static str,
    /// Keys whose effect it shows.
    keys: Vec<&'static str>,
    hosts: Vec<String>,
    toml: &'static str,
    exchanges: Vec<&'static str>,
}

fn cases() -> Vec<Case> {
    CASES.split("\n## ").skip(1).enumerate().map(|(number, text)| Case::parse(number, text)).collect()
}

/// Returns the keys whose effect the cases show.
pub(crate) fn keys_shown() -> Vec<&'static str> {
    cases().into_iter().flat_map(|case| case.keys).collect()
}

/// Returns the text between two marks.
fn between(text: &'static str, start: &str, end: &str) -> Option<&'static str> {
    Some(text.split_once(start)?.1.split_once(end)?.0)
}

impl Case {
    fn parse(number: usize, text: &'static str) -> Self {
        let list = |name: &str| {
            let names = between(text, name, "\n").unwrap_or_default().split(", ");
            names.map(|name| name.trim_matches('`')).filter(|name| !name.is_empty())
        };
        let hosts: Vec<String> = list("\nHosts: ").map(ToOwned::to_owned).collect();
        Self {
            title: text.lines().next().expect("a title"),
            keys: list("\nKeys: ").collect(),
            hosts: if hosts.is_empty() { vec![format!("case-{number}.test")] } else { hosts },
            toml: between(text, "```toml\n", "```\n").expect("a configuration"),
            exchanges: between(text, "```text\n", "```").expect("exchanges").lines().collect(),
        }
    }

    fn check(&self, server: &Server, client: &mut TestClient, driver: &str) {
        let mut version = Version::default();
        for exchange in &self.exchanges {
            let (request, expected) = exchange.split_once(" -> ").expect("an arrow");
            let mut parts = request.split(" | ");
            let line = parts.next().expect("a request line");
            let headers: Vec<String> = parts.map(|part| version.substitute(part)).collect();
            let has_host = headers.iter().any(|header| header.starts_with("Host: "));
            let host = if has_host { String::new() } else { format!("Host: {}\r\n", self.hosts[0]) };
            let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
            let (method, target) = line.split_once(' ').expect("a method and a target");
            let target = testkit::tls::target(target);
            let request = format!("{method} {target} HTTP/1.1\r\n{host}{headers}\r\n");
            let response = client.send(request).response(method);
            check_response(
                &response,
                expected,
                &version,
                &format!("{} ({driver}): {exchange}\n{response:?}", self.title),
            );
            if response.field("Connection") == Some("close") {
                *client = server.connect();
            }
            if let Some(etag) = response.field("ETag") {
                let modified = response.field("Last-Modified").unwrap_or_default().to_owned();
                version = Version { etag: etag.to_owned(), modified };
            }
        }
    }
}

/// Validators of the previous response.
#[derive(Default)]
struct Version {
    etag: String,
    modified: String,
}

impl Version {
    fn substitute(&self, text: &str) -> String {
        text.replace("{etag}", &self.etag).replace("{modified}", &self.modified)
    }
}

fn check_response(response: &ClientResponse, expected: &str, version: &Version, shown: &str) {
    let mut parts = expected.split(" | ");
    assert_eq!(Some(response.status.to_string().as_str()), parts.next(), "{shown}");
    for part in parts {
        let text = |json: &str| serde_json::from_str::<String>(json).expect("a string");
        if let Some(body) = part.strip_prefix("= ") {
            let body = text(body);
            if response.field("Content-Encoding").is_some() {
                let is_part = response.body.windows(body.len()).any(|part| part == body.as_bytes());
                assert!(is_part, "{shown}");
            } else {
                assert_eq!(response.text(), body, "{shown}");
            }
        } else if let Some(body) = part.strip_prefix("~ ") {
            assert!(response.text().contains(&text(body)), "{body}: {shown}");
        } else {
            let (name, value) = part.split_once(':').expect("a header");
            let found = response.field(name).unwrap_or_default();
            let value = version.substitute(value.trim_start());
            match value.strip_prefix("not ") {
                _ if value == "*" => assert_ne!(found, "", "{name}: {shown}"),
                Some(other) => assert!(found != other && !found.is_empty(), "{name}: {shown}"),
                None => assert_eq!(found, value, "{name}: {shown}"),
            }
        }
    }
    let mut vary: Vec<_> =
        response.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Vary")).collect();
    let count = vary.len();
    vary.sort();
    vary.dedup();
    assert_eq!(vary.len(), count, "Vary is repeated: {shown}");
}

/// Settings that don't change a response: with and without a cache, by an acceptor.
const SETTINGS: &[&str] = &[
    "[server]\nworkers = 1\n",
    "[server]\nworkers = 1\n[cache]\nenabled = false\nhashed_bytes_max = 0\n",
    "[server]\nworkers = 2\naccept = \"dispatch\"\n[cache]\nfile_bytes_max = 6\nentries_max = 2\nhashed_bytes_max = 0\n",
];

/// Returns a folder with the files of all sites, and a configuration with a site for each case.
fn folder(settings: &str) -> TestFolder {
    let folder = TestFolder::new();
    let long = "one line of many\n".repeat(100);
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
        ("long.css", long.as_str()),
        ("kept.css", long.as_str()),
    ] {
        // Siblings are of ten bytes, except one.
        let len = if name.starts_with("plain") { 5 } else { 10 };
        let extension = name.split('.').nth(2).unwrap_or_default();
        folder.file(format!("www/{name}"), testkit::coded(extension, content, len));
        // Without a cache, files that were just written have weak tags.
        folder.set_modified(format!("www/{name}"), UNIX_EPOCH + Duration::new(1_000_000_000, 500));
    }
    folder.file("users.htpasswd", "ann:$2y$04$2Qg2mhOfIMFWvOWGiAwGjukuZFcTY2fz5K3PIPdRN4LznV4cOBmTC\n");
    folder.file("other/index.html", "other").file("other/f.txt", "other content");
    folder.file("www/links/f.txt", "content");
    for (link, target) in [
        ("same.txt", "f.txt".into()),
        ("out.txt", "../other/f.txt".into()),
        ("absolute.txt", folder.at("www/f.txt")),
        ("links/absolute.txt", folder.at("www/f.txt")),
        ("absolute-folder", folder.at("www/open")),
        ("absolute-out.txt", folder.at("other/f.txt")),
    ] {
        folder.link(format!("www/{link}"), target);
    }
    let site = |case: &Case| format!("\n# {}\n[[site]]\nhosts = {:?}\n{}", case.title, case.hosts, case.toml);
    let sites: String = cases().iter().map(site).collect();
    folder.file("site.toml", format!("{settings}\n[[site]]\nroot = \"www\"\n{sites}"));
    folder
}

#[test]
fn serves_every_case() {
    let cases = cases();
    assert!(cases.len() > 40, "{} cases", cases.len());
    for settings in SETTINGS {
        let folder = folder(settings);
        for driver in drivers() {
            println!("{driver}: {settings}");
            let server = Server::start(&folder, &["site.toml", "--driver", driver]);
            for case in &cases {
                // Twice: looked up, and cached.
                let mut client = server.connect();
                case.check(&server, &mut client, driver);
                case.check(&server, &mut client, driver);
            }
        }
    }
}

#[test]
fn cases_have_the_keys_that_they_show() {
    for Case { title, keys, toml, exchanges, hosts } in cases() {
        for key in keys {
            let name = key.rsplit('.').next().expect("a name");
            let has_own_host = !hosts[0].starts_with("case-");
            assert!(toml.contains(name) || (name == "hosts" && has_own_host), "{title}: {key}");
            assert!(!key.starts_with("site.route.") || toml.contains("[[site.route]]"), "{title}");
        }
        assert!(!exchanges.is_empty(), "{title}");
    }
}
