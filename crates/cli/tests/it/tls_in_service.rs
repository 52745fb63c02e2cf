//! HTTPS as its operator sees it: metrics, status, the access log, upgrades, and the memory of keys.

use std::fs;
use std::time::Instant;

use serde_json::Value;
use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::admin::{self, value};
use crate::process::{Server, drivers, has_proc, program_after, run};

/// Returns a client of one version, with its sessions.
fn client(version: &str) -> ClientTls {
    let options = ClientTlsOptions { version: Some(version), ..ClientTlsOptions::default() };
    ClientTls::with("localhost", &options).expect("a version")
}

/// Gets a path on a connection of its own. Returns the body, and whether the session was resumed.
fn get(client: &ClientTls, server: &Server, path: &str) -> (String, bool) {
    let mut client = TestClient::connect_by_tls(server.address(), client);
    let response = client.request("GET", path, &["Connection: close"]);
    (response.text().to_owned(), client.stream().is_resumed())
}

fn with_site() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "hello");
    folder
}

fn start(folder: &TestFolder, driver: &str, more: &[&str]) -> Server {
    Server::start(folder, &[&["site", "--self-signed", "--driver", driver, "--admin", "0"], more].concat())
}

/// Waits until a metric has a value.
#[track_caller]
fn until(server: &Server, key: &str, expected: u64) {
    let start = Instant::now();
    while value(server, key) != expected {
        assert!(start.elapsed() < TIMEOUT, "{key} is {} and not {expected}", value(server, key));
    }
}

#[test]
fn metrics_and_status_show_handshakes_and_certificates() {
    if testkit::tls::skips("its server has TLS anyway") {
        return;
    }
    for driver in drivers() {
        let folder = with_site();
        let server = start(&folder, driver, &[]);
        let (new, old) = (client("1.3"), client("1.2"));
        for (client, is_resumed) in [(&new, false), (&new, true), (&old, false)] {
            assert_eq!(get(client, &server, "/"), ("hello".to_owned(), is_resumed));
        }
        assert_eq!(TestClient::connect_in_clear(server.address()).get("/").status, 400, "plain HTTP");
        for (key, expected) in [
            ("shearwater_tls_handshakes_total{version=\"1.3\"}", 2),
            ("shearwater_tls_handshakes_total{version=\"1.2\"}", 1),
            ("shearwater_tls_handshakes_resumed_total", 1),
            ("shearwater_tls_failures_total{reason=\"not_tls\"}", 1),
            ("shearwater_tls_failures_total{reason=\"version\"}", 0),
            ("shearwater_tls_connections", 0),
            ("shearwater_tls_partial_bytes", 0),
            ("shearwater_tls_certificate_ok{name=\"(default)\",source=\"self-signed\"}", 1),
        ] {
            until(&server, key, expected);
        }
        let end =
            "shearwater_tls_certificate_end_timestamp_seconds{name=\"(default)\",source=\"self-signed\"}";
        let end = value(&server, end);
        let status: Value =
            serde_json::from_slice(&admin::connect(&server).get("/status.json").body).expect("JSON");
        let tls = &status["tls"];
        assert_eq!(
            (&tls["handshakes"]["1.3"], &tls["resumed"], &tls["failures"]["not_tls"]),
            (&2.into(), &1.into(), &1.into())
        );
        let certificate = &tls["certificates"][0];
        assert_eq!((&certificate["state"], &certificate["not_after"]), (&"valid".into(), &end.into()));
        let authority = admin::address(&server).to_string();
        let (code, stdout, stderr) = run(&folder, &["top", &authority, "--once"]);
        assert_eq!(code, 0, "{stderr}");
        // A whole number of days, in the second of its beginning one more.
        let has_end = ["certificates 89 d", "certificates 90 d"].iter().any(|end| stdout.contains(end));
        assert!(stdout.contains("TLS          0 open") && has_end, "{stdout}");
    }
}

#[test]
fn a_server_without_tls_has_no_metrics_of_it() {
    if testkit::tls::skips("its server has no TLS") {
        return;
    }
    let folder = with_site();
    let server = Server::start(&folder, &["site", "--admin", "0"]);
    server.connect().get("/");
    for path in ["/metrics", "/status.json"] {
        let response = admin::connect(&server).get(path);
        assert!(!response.text().contains("tls"), "{}", response.text());
    }
}

#[test]
fn the_shown_end_of_a_pair_follows_reloads() {
    let folder = with_site();
    let pair = |days: &str| {
        let mut command = std::process::Command::new("openssl");
        command.current_dir(folder.path()).args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
        command.args(["ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]);
        command.args(["-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-days", days]);
        command.output().is_ok_and(|output| output.status.success())
    };
    folder.file(
        "site.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [[site]]\nroot = \"site\"\nhosts = [\"a.example\"]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n",
    );
    if !pair("90") {
        println!("skipped: there is no openssl");
        return;
    }
    let mut command = crate::process::program(&folder, &["--config", "site.toml", "--pid-file", "pid"]);
    let server = Server::of(&mut command);
    let ok = "shearwater_tls_certificate_ok{name=\"a.example\",source=\"own\"}";
    assert_eq!(value(&server, ok), 1);
    for (days, is_ok) in [("1", 1), ("300", 1)] {
        assert!(pair(days), "it was there before");
        assert_eq!(run(&folder, &["reload", "pid"]).0, 0);
        // A certificate of one day ends soon in its last fifth only.
        assert_eq!(value(&server, ok), is_ok);
        let end = "shearwater_tls_certificate_end_timestamp_seconds{name=\"a.example\",source=\"own\"}";
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
        let left = value(&server, end) - now;
        assert_eq!(left.div_ceil(86_400).to_string(), days);
    }
    // A broken pair: the old one is served, and shown.
    folder.file("cert.pem", "nonsense");
    assert_eq!(run(&folder, &["reload", "pid"]).0, 1);
    assert_eq!(value(&server, ok), 1);
}

#[test]
fn a_certificate_that_can_not_be_ordered_is_shown() {
    let folder = with_site();
    folder.file(
        "site.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[admin]\nlisten = \"127.0.0.1:0\"\n[tls]\nstorage = \"state\"\n\
         [acme]\ndirectory = \"https://127.0.0.1:1/\"\nagree_to_terms = true\n\
         [[site]]\nroot = \"site\"\nhosts = [\"a.example.org\"]\ntls = \"auto\"\n",
    );
    let server = Server::of(&mut crate::process::program(&folder, &["--config", "site.toml"]));
    until(&server, "shearwater_tls_certificate_order_failing{name=\"a.example.org\"}", 1);
    assert_eq!(value(&server, "shearwater_tls_certificate_ok{name=\"a.example.org\",source=\"auto\"}"), 0);
    let metrics = admin::connect(&server).get("/metrics");
    assert!(!metrics.text().contains("certificate_end_timestamp"), "{}", metrics.text());
    let status = admin::connect(&server).get("/status.json");
    assert!(status.text().contains("\"state\":\"missing\""), "{}", status.text());
    let authority = admin::address(&server).to_string();
    let (_, stdout, _) = run(&folder, &["top", &authority, "--once"]);
    assert!(stdout.contains("a.example.org has no certificate, and its last order failed."), "{stdout}");
}

#[test]
fn the_access_log_has_the_scheme_and_the_version() {
    for driver in drivers() {
        let folder = with_site();
        folder.file(
            "site.toml",
            "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[log]\naccess = \"a.log\"\n\
             format = \"$scheme $ssl_protocol $request_uri\"\n[[site]]\nroot = \"site\"\ntls = \"self-signed\"\n",
        );
        let mut command = crate::process::program(&folder, &["--config", "site.toml", "--driver", driver]);
        let server = Server::of(&mut command);
        get(&client("1.3"), &server, "/?a");
        get(&client("1.2"), &server, "/?b");
        // Of plain HTTP there the target is unknown.
        TestClient::connect_in_clear(server.address()).get("/?c");
        let lines = "https TLSv1.3 /?a\nhttps TLSv1.2 /?b\nhttp - -\n";
        let start = Instant::now();
        loop {
            let log = fs::read_to_string(folder.at("a.log")).unwrap_or_default();
            if log == lines {
                break;
            }
            assert!(start.elapsed() < TIMEOUT, "{log}");
        }
    }
}

/// Keys of a file replace those that the server has made, and the other way round.
#[test]
fn a_reload_replaces_ticket_keys_and_names_what_it_does_not_change() {
    let folder = with_site();
    let config = |keys: &str, email: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[tls]\n{keys}[acme]\nemail = \"{email}\"\n\
             [[site]]\nroot = \"site\"\ntls = \"self-signed\"\n"
        )
    };
    folder.file("keys", [7; 80]).file("site.toml", config("", "a@example.org"));
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(folder.at("keys"), private).expect("our own file");
    let mut command = crate::process::program(&folder, &["--config", "site.toml", "--pid-file", "pid"]);
    let server = Server::of(&mut command);
    let client = client("1.3");
    get(&client, &server, "/");
    for (keys, email, is_resumed) in [
        ("", "a@example.org", true),
        ("ticket_keys = \"keys\"\n", "a@example.org", false),
        ("ticket_keys = \"keys\"\n", "b@example.org", true),
        ("", "b@example.org", false),
    ] {
        folder.file("site.toml", config(keys, email));
        let (code, stdout, stderr) = run(&folder, &["reload", "pid"]);
        assert_eq!(code, 0, "{stderr}");
        let warning =
            "a change of `acme.email` to b@example.org takes effect after a restart; now a@example.org";
        assert_eq!(
            format!("{stdout}{stderr}").contains(warning),
            email != "a@example.org",
            "{stdout}{stderr}"
        );
        assert_eq!(get(&client, &server, "/").1, is_resumed, "{keys}{email}");
        assert!(get(&client, &server, "/").1);
    }
}

/// A session of the old process is resumed by the new one, and by the one after it.
#[test]
fn sessions_survive_upgrades() {
    if testkit::tls::skips("its server has TLS anyway") {
        return;
    }
    for driver in drivers() {
        let folder = with_site();
        let mut server = start(&folder, driver, &["--pid-file", "pid"]);
        let clients = [client("1.2"), client("1.3")];
        for client in &clients {
            assert!(!get(client, &server, "/").1);
        }
        for _ in 0..2 {
            let (code, stdout, stderr) = run(&folder, &["upgrade", "pid"]);
            assert_eq!(code, 0, "{stderr}");
            let new = stdout.split_whitespace().nth(1).and_then(|number| number.parse().ok());
            server.succeeded_by(rustix::process::Pid::from_raw(new.expect("its number")).expect("a process"));
            for client in &clients {
                assert!(get(client, &server, "/").1, "{client:?}");
            }
        }
        if has_proc() {
            let of = |name: &str| {
                fs::read_to_string(format!("/proc/{}/{name}", server.pid().as_raw_nonzero())).expect("ours")
            };
            let given = format!("{}{}", of("cmdline"), of("environ"));
            assert!(!given.contains("state "), "{given}");
        }
        server.stop();
    }
}

/// Without TLS, core dumps are the operator's choice.
#[test]
fn keys_are_not_in_core_dumps() {
    if !has_proc() {
        return;
    }
    for (flags, limit) in [(&["--self-signed"][..], "1 "), (&[][..], "unlimited ")] {
        let folder = with_site();
        let arguments = [&["site", "--listen", "127.0.0.1:0"], flags].concat();
        let shell = "ulimit -c unlimited || ulimit -c hard";
        let server = Server::of(&mut program_after(shell, &folder, &arguments));
        let path = format!("/proc/{}/limits", server.pid().as_raw_nonzero());
        let limits = fs::read_to_string(path).expect("ours");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).expect("a line");
        let hard = line.split_whitespace().nth(1).expect("a hard limit");
        if hard != "0" {
            assert!(line.trim_start().starts_with(limit), "{line}");
        }
    }
}
