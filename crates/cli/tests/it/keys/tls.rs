//! `[tls]`, `[acme]`, and the keys of a site on TLS: as `check` describes them, and behind a proxy that ends TLS.

use std::os::unix::fs::PermissionsExt;

use testkit::ClientResponse;

use super::{SITE, folder};
use crate::process::{Server, drivers, run};

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
pub(crate) fn hsts() {
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
