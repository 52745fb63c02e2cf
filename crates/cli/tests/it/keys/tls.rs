//! `[tls]`, `[acme]`, and the keys of a site on TLS: as `check` describes them, and behind a proxy that ends TLS.

use std::os::unix::fs::PermissionsExt;

use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{Client, ClientResponse};

use super::{SITE, folder};
use crate::authority::Authority;
use crate::directory::AcmeDirectory;
use crate::process::{Server, drivers, program, run};

/// A certificate for `example.org` and names beneath it, until 2126, and its key.
const CERTIFICATE: &str = include_str!("../../certificates/cert.pem");
const KEY: &str = include_str!("../../certificates/key.pem");

/// Returns the lines of a configuration's summary with a label, after the label; and the warnings.
fn summary(config: &str, label: &str) -> (Vec<String>, String) {
    let folder = folder(config);
    folder.file("a.pem", CERTIFICATE).file("a.key", KEY);
    folder.file("public.key", KEY);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.at("a.key"), private).expect("our own file");
    let (code, stdout, stderr) = run(&folder, &["check", "site.toml"]);
    assert_eq!(code, 0, "{config}\n{stderr}");
    let shown = stdout.replace(&format!("{}/", folder.path().display()), "").replace("0.0.0.0", "[::]");
    let lines = shown.lines().filter_map(|line| line.trim_start().strip_prefix(label));
    (lines.map(|line| line.trim_start().to_owned()).collect(), stderr)
}

#[test]
pub(crate) fn addresses() {
    let config = "[server]\nhttp_port = 8080\nhttps_port = 8443\n[[listen]]\naddress = \"127.0.0.1:1\"\ntls = true\n\
                  [[listen]]\naddress = \"127.0.0.1:2\"\n[[site]]\nroot = \"www\"\ntls = \"self-signed\"\n";
    let expected = ["[::]:8080", "[::]:8443 (TLS)", "127.0.0.1:1 (TLS)", "127.0.0.1:2"];
    assert_eq!(summary(config, "address"), (expected.map(str::to_owned).into(), String::new()));
}

#[test]
pub(crate) fn certificates() {
    let of = |keys: &str| {
        format!(
            "[server]\nhttps_port = 8443\n[tls]\nstorage = \"state\"\n{keys}[[site]]\nroot = \"www\"\nhosts = [\"a.example.org\", \"b.example.org\"]\n"
        )
    };
    for (keys, tls, described) in [
        ("", "\"auto\"", "by itself from letsencrypt, in state"),
        (
            "[acme]\ndirectory = \"https://ca.example/d\"\n",
            "\"auto\"",
            "by itself from https://ca.example/d, in state",
        ),
        ("", "\"self-signed\"", "self-signed, which no browser trusts: for trying"),
        ("", "{ cert = \"a.pem\", key = \"a.key\" }", "a.pem, until 2126-11-03"),
        (
            "",
            "{ cert = \"a.pem\", key = \"a.key\", client_ca = \"a.pem\" }",
            "a.pem, until 2126-11-03, clients by a.pem",
        ),
    ] {
        let config = format!("{}tls = {tls}\n", of(keys));
        let line = format!("a.example.org, b.example.org: {described}");
        assert_eq!(summary(&config, "certificate"), (vec![line], String::new()), "{config}");
    }
    let (_, warnings) =
        summary(&format!("{}tls = {{ cert = \"a.pem\", key = \"public.key\" }}\n", of("")), "");
    assert!(warnings.starts_with("warning: everyone on this machine can read this key\n"), "{warnings}");
    let site = |number: usize| {
        format!("[[site]]\nroot = \"www\"\nhosts = [\"a{number}.example.org\"]\ntls = \"self-signed\"\n")
    };
    let many: String = (0..25).map(site).collect();
    let (lines, _) = summary(&format!("[server]\nhttps_port = 8443\n{many}"), "certificate");
    assert_eq!((lines.len(), lines[20].as_str()), (21, "and 5 more, which `shearwater check --json` lists"));
}

#[test]
pub(crate) fn files() {
    let config = "[server]\nhttps_port = 8443\n[tls]\nticket_keys = \"www/f.txt\"\n[acme]\nca = \"www/f.txt\"\n\
                  [[site]]\nroot = \"www\"\ntls = \"self-signed\"\n";
    let (_, warnings) = summary(config, "");
    let message = "warning: everyone on this machine can read this key\n --> site.toml:4:15\n";
    assert!(warnings.starts_with(message) && warnings.matches("warning: ").count() == 1, "{warnings}");
}

/// The proxy of the tests, which is trusted.
const BEHIND_A_PROXY: &str =
    "[server]\ntrusted_proxies = [\"127.0.0.1\"]\nclient_header = \"x-forwarded-for\"\n";

/// Serves a site with a key behind a proxy, on each driver. `check` gets responses to a path, by TLS or in clear.
fn behind_a_proxy(key: &str, check: impl Fn(&dyn Fn(&str, &str) -> ClientResponse)) {
    for driver in drivers() {
        let folder = folder(&format!("{BEHIND_A_PROXY}{SITE}{key}\n"));
        let server = Server::start(&folder, &["site.toml", "--driver", driver]);
        check(&|scheme, path| {
            let scheme = format!("X-Forwarded-Proto: {scheme}");
            server.connect().request("GET", path, &[&scheme])
        });
    }
}

#[test]
pub(crate) fn http() {
    if testkit::tls::skips("a proxy that ends TLS is in clear") {
        return;
    }
    behind_a_proxy("http = \"redirect\"", |get| {
        let redirected = get("http", "/f.txt?a=b");
        assert_eq!(
            (redirected.status, redirected.field("Location")),
            (301, Some("https://localhost/f.txt?a=b"))
        );
        assert_eq!(get("https", "/f.txt").text(), "content");
    });
    behind_a_proxy("http = \"serve\"", |get| {
        assert_eq!(get("http", "/f.txt").text(), "content");
    });
}

#[test]
pub(crate) fn redirect_port() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let of = |key: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{key}\n\
             [[site]]\nroot = \"www\"\ntls = \"self-signed\"\n"
        )
    };
    for driver in drivers() {
        let folder = folder(&of(""));
        let mut command = program(&folder, &["site.toml", "--pid-file", "pid", "--driver", driver]);
        let server = Server::of(&mut command);
        let location = || {
            let response = server.connect().request("GET", "/f.txt", &[]);
            response.field("Location").unwrap_or_default().to_owned()
        };
        let url = server.banner.split_whitespace().find_map(|word| word.strip_prefix("https://127.0.0.1:"));
        // The port that the system picked, also after a reload.
        let picked = format!("https://localhost:{}f.txt", url.expect("an address with TLS"));
        assert_eq!(location(), picked, "{driver}");
        for (key, expected) in [
            ("", picked.as_str()),
            ("[tls]\nredirect_port = 8443", "https://localhost:8443/f.txt"),
            ("[tls]\nredirect_port = 443", "https://localhost/f.txt"),
        ] {
            folder.file("site.toml", of(key));
            let (code, _, stderr) = run(&folder, &["reload", "pid"]);
            assert_eq!((code, location().as_str()), (0, expected), "{driver}: {key}\n{stderr}");
        }
    }
}

#[test]
pub(crate) fn hsts() {
    if testkit::tls::skips("a proxy that ends TLS is in clear") {
        return;
    }
    for (key, value) in [
        ("hsts = \"180d\"", Some("max-age=15552000")),
        ("hsts = { max_age = \"300s\", subdomains = true }", Some("max-age=300; includeSubDomains")),
        (
            "hsts = { max_age = \"2y\", subdomains = true, preload = true }",
            Some("max-age=63072000; includeSubDomains; preload"),
        ),
        ("hsts = false", None),
    ] {
        behind_a_proxy(key, |get| {
            for (path, status) in [("/f.txt", 200), ("/none", 404)] {
                let by_tls = get("https", path);
                assert_eq!(
                    (by_tls.status, by_tls.field("Strict-Transport-Security")),
                    (status, value),
                    "{key}"
                );
                let in_clear = get("http", path);
                assert_eq!((in_clear.status, in_clear.field("Strict-Transport-Security")), (status, None));
            }
        });
    }
}

/// Serves `localhost` by TLS with keys of `[tls]`, on each driver. `check` gets the error of a request to a server name by
/// a version; `None`: the response is there.
fn by_tls(keys: &str, check: impl Fn(&dyn Fn(&str, &str) -> Option<String>)) {
    let config = format!(
        "[tls]\n{keys}\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{SITE}hosts = [\"localhost\"]\ntls = \"self-signed\"\n"
    );
    for driver in drivers() {
        let folder = folder(&config);
        let server = Server::of(&mut program(&folder, &["site.toml", "--driver", driver]));
        check(&|name, version| {
            let options = ClientTlsOptions { version: Some(version), ..ClientTlsOptions::default() };
            let tls = ClientTls::with(name, &options).expect("usable settings");
            let mut client: Client = Client::connect_by_tls(server.address(), &tls).expect("it listens");
            let response = client.get("/f.txt");
            response
                .map(|response| assert_eq!(response.text(), "content"))
                .err()
                .map(|error| error.to_string())
        });
    }
}

#[test]
pub(crate) fn min_version() {
    for (key, is_refused) in [("min_version = \"1.3\"", true), ("min_version = \"1.2\"", false)] {
        by_tls(key, |get| {
            assert_eq!(get("localhost", "1.3"), None, "{key}");
            let refused = get("localhost", "1.2");
            let alert = refused.as_ref().is_some_and(|error| error.contains("ProtocolVersion"));
            assert_eq!(alert, is_refused, "{key}: {refused:?}");
        });
    }
}

#[test]
pub(crate) fn strict_sni() {
    for (key, is_refused) in [("strict_sni = true", true), ("strict_sni = false", false)] {
        by_tls(key, |get| {
            assert_eq!(get("localhost", "1.3"), None, "{key}");
            // A client sends no name for an address.
            let refused = get("127.0.0.1", "1.3");
            let alert = refused.as_ref().is_some_and(|error| error.contains("UnrecognisedName"));
            assert_eq!(alert, is_refused, "{key}: {refused:?}");
        });
    }
}

#[test]
pub(crate) fn protocols() {
    let config = |key: &str| {
        format!(
            "[tls]\n{key}\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{SITE}tls = \"self-signed\"\n"
        )
    };
    for driver in drivers() {
        let folder = folder(&config(""));
        let mut command = program(&folder, &["site.toml", "--pid-file", "pid", "--driver", driver]);
        let server = Server::of(&mut command);
        let both = &["http/1.1", "h2"];
        for (key, offer, chosen) in [
            ("", both, Ok("h2")),
            ("protocols = [\"http/1.1\"]", both, Ok("http/1.1")),
            ("protocols = [\"http/1.1\", \"h2\"]", both, Ok("http/1.1")),
            ("protocols = [\"h2\"]", both, Ok("h2")),
            ("protocols = [\"h2\"]", &["http/1.1", "h3"], Err("NoApplicationProtocol")),
        ] {
            folder.file("site.toml", config(key));
            let (code, _, stderr) = run(&folder, &["reload", "pid"]);
            assert_eq!(code, 0, "{driver}: {key}\n{stderr}");
            let options = ClientTlsOptions { protocols: offer, ..ClientTlsOptions::default() };
            let tls = ClientTls::with("localhost", &options).expect("usable settings");
            let mut client: Client = Client::connect_by_tls(server.address(), &tls).expect("it listens");
            let found = client.stream().protocol();
            match chosen {
                Ok(chosen) => assert_eq!(found.as_deref(), Some(chosen), "{driver}: {key}"),
                Err(alert) => {
                    let error = client.get("/f.txt").expect_err("the handshake was refused").to_string();
                    assert!(found.is_none() && error.contains(alert), "{driver}: {key}: {error}");
                }
            }
        }
    }
}

/// Starts with a site whose certificate an authority of ours issues, and returns the request for an account.
fn account(keys: &str) -> Option<serde_json::Value> {
    let authority = Authority::new("Test Authority");
    let directory = AcmeDirectory::start(&authority.issue(&["localhost"]));
    let url = &directory.url;
    let config = format!(
        "[tls]\nstorage = \"state\"\n[acme]\ndirectory = \"{url}\"\nca = \"ca.pem\"\n{keys}\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n{SITE}hosts = [\"a.example.org\"]\ntls = \"auto\"\n"
    );
    let folder = folder(&config);
    folder.file("ca.pem", &authority.pem);
    match Server::try_start(&mut program(&folder, &["site.toml", "--workers", "1"])) {
        Ok(mut server) => loop {
            let line = server.next_line();
            assert!(!line.is_empty(), "it has ended");
            if line.contains("no accounts here") {
                return directory.account();
            }
        },
        Err((code, output)) => {
            assert!(code == Some(1) && output.contains("terms"), "{code:?}: {output}");
            directory.account()
        }
    }
}

#[test]
pub(crate) fn acme_account() {
    let plain = account("").expect("a request");
    assert_eq!(plain["termsOfServiceAgreed"], true);
    assert_eq!(plain["contact"].as_array().map_or(0, Vec::len), 0, "{plain}");
    assert!(plain["externalAccountBinding"].is_null(), "{plain}");
    let full = "email = \"ops@example.org\"\neab = { kid = \"key-1\", hmac = \"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0\" }\n";
    let full = account(full).expect("a request");
    assert_eq!(full["contact"], serde_json::json!(["mailto:ops@example.org"]));
    let (kid, is_signed) = crate::directory::binding(&full, b"secret-secret-secret-secret");
    assert_eq!((kid.as_str(), is_signed), ("key-1", true));
    assert_eq!(account("agree_to_terms = false\n"), None);
}
