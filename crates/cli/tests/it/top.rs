//! The status of a running server: `shearwater top`, and the status page with its script.

use std::net::TcpListener;
use std::process::Command;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::process::{Server, drivers, run};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "index");
    folder
}

/// Starts a server with an admin listener, and returns it with the listener's address.
fn start(folder: &TestFolder, driver: &str) -> (Server, String) {
    let server = Server::start(folder, &["site", "--driver", driver, "--admin", "127.0.0.1:0"]);
    let url = server.line("admin").expect("an admin listener");
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/status")).expect(url);
    let address = address.to_owned();
    (server, address)
}

fn page(address: &str) -> (String, String) {
    let mut client = TestClient::connect_in_clear(address.parse().expect("an address"));
    let response = client.get("/status");
    assert_eq!((response.status, response.field("Content-Type")), (200, Some("text/html; charset=utf-8")));
    let policy = response.field("Content-Security-Policy").expect("a policy").to_owned();
    (response.text().to_owned(), policy)
}

/// Returns the content of the only element of this name.
fn element<'a>(page: &'a str, name: &str) -> &'a str {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    assert_eq!((page.matches(&open).count(), page.matches(&close).count()), (1, 1), "{name}");
    page.split_once(&open).and_then(|(_, rest)| rest.split_once(&close)).expect("both ends").0
}

#[test]
fn top_prints_the_state_of_a_server() {
    for driver in drivers() {
        let folder = folder();
        let (server, address) = start(&folder, driver);
        let mut client = server.connect();
        for _ in 0..5 {
            assert_eq!(client.get("/").status, 200);
        }
        assert_eq!(client.get("/none").status, 404);
        // A response may arrive before it is counted.
        let status = || run(&folder, &["top", &format!("http://{address}/"), "--json"]);
        let start = Instant::now();
        loop {
            let (code, json, stderr) = status();
            let json: Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!((code, stderr.as_str()), (0, ""));
            if json["requests"]["total"].as_u64() == Some(6) {
                break;
            }
            assert!(start.elapsed() < TIMEOUT, "{json}");
        }
        let (code, stdout, stderr) = run(&folder, &["top", &address, "--once"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(stdout.starts_with(&format!("Shearwater {}  ", env!("CARGO_PKG_VERSION"))), "{stdout}");
        assert!(stdout.contains(&server.address().to_string()), "{stdout}");
        assert!(stdout.contains("● Serving") && stdout.contains(", nothing unusual.\n"), "{stdout}");
        assert!(stdout.contains("/s   6 in all\n"), "{stdout}");
        assert!(
            !stdout.contains('\x1b') && stdout.lines().all(|line| line.chars().count() <= 100),
            "{stdout}"
        );
        // A pipe gets the same without the flag.
        let (code, again, _) = run(&folder, &["top", &address]);
        assert_eq!((code, again.lines().count()), (0, stdout.lines().count()), "{again}");
    }
}

#[test]
fn top_reads_a_unix_socket() {
    let folder = folder();
    let socket = format!("unix:{}", folder.at("admin.sock").display());
    let server = Server::start(&folder, &["site", "--admin", &socket]);
    let (code, stdout, stderr) = run(&folder, &["top", &socket, "--once"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains(", nothing unusual."), "{stdout}");
    drop(server);
}

#[test]
fn top_names_what_is_wrong_with_an_address() {
    if testkit::tls::skips("its address is in clear") {
        return;
    }
    let folder = folder();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let refused = format!(
        "error: no status from {free}: connection refused\n\
         help: start the server with `--admin {free}`, or name the address of its `[admin]` section\n"
    );
    assert_eq!(run(&folder, &["top", &free.to_string()]), (1, String::new(), refused));
    let (code, _, stderr) = run(&folder, &["top", "unix:none.sock"]);
    assert!(code == 1 && stderr.starts_with("error: no status from unix:none.sock: no such socket\nhelp: "));
    // The server's own address instead of its admin listener's.
    let server = Server::start(&folder, &["site"]);
    let address = server.address();
    let wrong = format!(
        "error: no status from {address}: status 404\nhelp: name the address of the server's `[admin]` section\n"
    );
    assert_eq!(run(&folder, &["top", &address.to_string(), "--json"]), (1, String::new(), wrong));
    folder.file("site/status.json", "{}");
    let server = Server::start(&folder, &["site"]);
    let (code, _, stderr) = run(&folder, &["top", &server.address().to_string()]);
    assert!(code == 1 && stderr.contains(": the response is not a server's status\n"), "{stderr}");
}

#[test]
fn top_waits_a_bounded_time_for_a_server() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let error = format!("error: no status from {address}: no response within 3s\n");
    assert_eq!(run(&folder(), &["top", &address]), (1, String::new(), error));
}

#[test]
fn the_status_page_has_a_policy_and_no_references() {
    for driver in drivers() {
        let folder = folder();
        let (_server, address) = start(&folder, driver);
        let (page, policy) = page(&address);
        for name in ["script", "style"] {
            let hash = BASE64_STANDARD.encode(Sha256::digest(element(&page, name)));
            assert!(policy.contains(&format!("{name}-src 'sha256-{hash}'")), "{name}: {hash}: {policy}");
        }
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        assert!(
            policy.contains("connect-src 'self'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        // Names of XML are no references.
        let names = ["http://www.w3.org/2000/svg"];
        let rest = names.iter().fold(page.clone(), |page, name| page.replace(name, ""));
        for reference in ["http:", "https:", "//", "src=", "url(", "@import", "import(", "innerHTML", "eval("]
        {
            let found =
                rest.lines().find(|line| !line.trim_start().starts_with("//") && line.contains(reference));
            assert_eq!(found, None, "{reference}");
        }
        assert_eq!(rest.matches("href=").count(), 2, "the icon and the document");
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
        let handlers = rest.split(" on").skip(1).filter_map(|rest| rest.split_once('='));
        assert!(!handlers.map(|(name, _)| name).any(is_name), "a handler that the policy forbids");
        assert!(!rest.contains(" style="), "a style that the policy forbids");
    }
}

#[test]
fn the_status_page_draws_the_verdict_of_the_server() {
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("skipped: there is no chromium");
        return;
    }
    let folder = folder();
    folder.file("site.toml", "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n");
    let server = Server::start(&folder, &["site.toml", "--admin", "127.0.0.1:0", "--pid-file", "pid"]);
    let url = server.line("admin").expect("an admin listener").to_owned();
    let drawn = || {
        let mut browser = Command::new("chromium");
        browser.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ]);
        browser.arg(format!("--user-data-dir={}", folder.at("profile").display()));
        String::from_utf8_lossy(&browser.arg(&url).output().expect("it runs").stdout).into_owned()
    };
    let page = drawn();
    assert!(page.contains("<p class=\"first\" id=\"first\">Serving"), "{page}");
    folder.file("site.toml", "[[site]]\nrot = \"site\"\n");
    let (code, _, _) = run(&folder, &["reload", "pid"]);
    let page = drawn();
    assert_eq!(code, 1);
    assert!(
        page.contains("data-level=\"notice\"><p class=\"first\" id=\"first\">The last reload was refused "),
        "{page}"
    );
    assert!(page.contains("rot = \"site\"\n"), "{page}");
}

#[test]
fn the_status_page_formats_as_top_does() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: there is no node");
        return;
    }
    let folder = folder();
    let (_server, address) = start(&folder, drivers()[0]);
    folder.file("page.html", page(&address).0);
    let mut node = Command::new("node");
    node.arg(format!("{TESTS}/status_page.js")).arg(folder.at("page.html"));
    let output = node.arg(format!("{TESTS}/status_cases.json")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.ends_with(" as expected\n"), "{text}");
}

#[test]
fn top_draws_in_a_terminal_and_restores_it() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: there is no script");
        return;
    }
    let folder = folder();
    let (_server, address) = start(&folder, drivers()[0]);
    let top = format!("{} top {address}", env!("CARGO_BIN_EXE_shearwater"));
    for (key, colours) in [("q", true), ("\\003", false)] {
        let line = format!(
            "(until grep -q Serving typed; do sleep 0.1; done; printf '{key}') | script -qfec 'stty rows 24 cols 80; {top}; stty -a' typed >shown"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(folder.path());
        shell.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        shell.env("NO_COLOR", if colours { "" } else { "1" });
        folder.file("typed", "");
        assert!(shell.status().expect("a shell").success());
        let shown = String::from_utf8_lossy(&std::fs::read(folder.at("shown")).expect("output")).into_owned();
        let (enter, leave) = ("\x1b[?1049h", "\x1b[?1049l");
        let (_, rest) = shown.split_once(enter).expect("the alternate screen");
        let (screen, after) = rest.split_once(leave).expect("the usual screen");
        assert!(screen.contains("Serving") && screen.contains("q quits"), "{screen:?}");
        assert_eq!(screen.contains("\x1b[32m"), colours, "{screen:?}");
        let modes: Vec<&str> = after.split_whitespace().collect();
        assert!(["icanon", "echo", "isig", "opost"].iter().all(|mode| modes.contains(mode)), "{after:?}");
    }
}
