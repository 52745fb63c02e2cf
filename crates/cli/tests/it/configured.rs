//! Serving with a configuration file: relative paths, flags that override it, environment variables; the specified file, which every
//! version must load unchanged.

use std::collections::BTreeSet;

use rustix::process::{Resource, getrlimit};
use testkit::{TestClient, TestFolder};

use crate::diagnostics;
use crate::keys::{SITE, admin, folder, guards, limits, log, performance, server, tls};
use crate::process::{Server, drivers, has_proc, program, run, threads};
use crate::sites;

#[test]
fn resolves_roots_against_the_folder_of_the_file() {
    let folder = TestFolder::new();
    folder.file("conf/www/f.txt", "content").file("conf/site.toml", SITE);
    let server = Server::start(&folder, &["--config", "conf/site.toml"]);
    assert_eq!(server.line("serves"), folder.at("conf/www").to_str());
    assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "content");
    // Without a site: the folder `public` beside the file, or that of the command line.
    folder.file("conf/public/f.txt", "public").file("conf/none.toml", "").file("other/f.txt", "other");
    let server = Server::start(&folder, &["--config", "conf/none.toml"]);
    assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "public");
    let server = Server::start(&folder, &["other", "--config", "conf/none.toml"]);
    assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "other");
    let (code, _, stderr) = run(&folder, &["other", "--config", "conf/site.toml"]);
    assert_eq!(code, 2);
    let expected =
        "error: both the folder other and the sites of conf/site.toml are given\nhelp: name one of them\n";
    assert_eq!(stderr, expected);
}

#[test]
fn flags_override_the_file_and_are_reported() {
    let folder = folder(&format!("[server]\nworkers = 3\ndrain_timeout = 5\n{SITE}"));
    let server = Server::start(&folder, &["--config", "site.toml", "--workers", "2", "-v"]);
    assert_eq!(
        (server.line("workers"), server.line("flag")),
        (Some("2"), Some("--workers 2 overrides server.workers = 3"))
    );
    // Keys that the file doesn't have, or has with the same value, are not reported.
    let server =
        Server::start(&folder, &["--config", "site.toml", "--workers", "3", "--drain", "5", "--pin", "-v"]);
    assert_eq!((server.line("workers"), server.line("flag")), (Some("3"), None));
}

#[test]
fn substitutes_environment_variables() {
    let folder = folder(
        "[[site]]\nroot = \"${SHEARWATER_TEST_ROOT:-www}\"\n\
         headers = { set = { X-Key = \"a ${SHEARWATER_TEST_KEY} b\", X-Plain = \"$${SHEARWATER_TEST_KEY}\" } }\n",
    );
    folder.file("other/f.txt", "other content");
    let arguments = ["--config", "site.toml", "--listen", "127.0.0.1:0"];
    for (root, content) in [("", "content"), ("other", "other content")] {
        let mut command = program(&folder, &arguments);
        command.env("SHEARWATER_TEST_KEY", "hunter2").env("SHEARWATER_TEST_ROOT", root);
        let server = Server::of(&mut command);
        let response = server.connect().request("GET", "/f.txt", &[]);
        assert_eq!((response.text(), response.field("X-Key")), (content, Some("a hunter2 b")));
        assert_eq!(response.field("X-Plain"), Some("${SHEARWATER_TEST_KEY}"));
        assert!(!server.banner.contains("hunter2"), "{}", server.banner);
    }
    let mut command = program(&folder, &["config", "show", "site.toml"]);
    let printed = command.env("SHEARWATER_TEST_KEY", "hunter2").output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    assert!(printed.contains("a ${SHEARWATER_TEST_KEY} b") && !printed.contains("hunter2"), "{printed}");
}

const SPECIFIED: &str = include_str!("specified.toml");

#[test]
fn loads_the_specified_file() {
    let folder = TestFolder::new();
    folder.file("public/f.txt", "content").file("specified.toml", SPECIFIED);
    for driver in drivers() {
        let mut command = program(&folder, &["--config", "specified.toml", "--driver", driver, "-v"]);
        match Server::try_start(&mut command) {
            Ok(server) => {
                let mut client = TestClient::connect_in_clear(([127, 0, 0, 1], 8080).into());
                assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
                assert_eq!(server.line("workers"), Some("32"));
            }
            Err((code, stderr)) => {
                let taken = "8080 is taken by another program: choose another port, or end that program";
                assert!(code == Some(1) && stderr.contains(taken), "{stderr}");
                println!("skipped: port 8080 is taken");
            }
        }
    }
}

#[test]
fn the_specified_file_takes_effect() {
    if testkit::tls::skips("the file names its addresses") {
        return;
    }
    let folder = folder(&format!("{SPECIFIED}{SITE}"));
    for driver in drivers() {
        let server = Server::start(&folder, &["site.toml", "--driver", driver, "--verbose"]);
        assert!(server.banner.contains(&format!(", {driver}, 32 workers\n")), "{}", server.banner);
        let overrides = |at: &str| format!("--listen 127.0.0.1:0 overrides the address {at}:8080\n");
        let banner = &server.banner;
        assert!(banner.contains(&overrides("[::]")) || banner.contains(&overrides("0.0.0.0")), "{banner}");
        // The kernel allows fewer descriptors than connections, of which idle ones may need none, and a shorter accept
        // queue.
        let limited =
            |limit: &str| banner.lines().any(|line| line.contains("limited") && line.contains(limit));
        let is_stored = banner.contains("up to 2,000,000 connections, idle ones without a descriptor");
        let has_enough = descriptors() > 2_300_000 || (*driver == "uring" && is_stored);
        assert!(limited("instead of 2000000") || has_enough, "{banner}");
        assert!(limited("instead of 65") || somaxconn() >= 65_535, "{banner}");
        if has_proc() {
            let workers =
                threads(server.pid()).iter().filter(|thread| thread.name.starts_with("worker-")).count();
            assert_eq!(workers, 32);
        }
        let mut client = server.connect();
        assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
        drop(server);
        let server = Server::start(&folder, &["site.toml", "--driver", driver]);
        assert_eq!(server.stop().1, "", "level error logs no normal operation");
    }
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

fn somaxconn() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}

type Test = fn();

/// Keys of the server and their tests. Those of sites are in `tests/sites.md`.
const SHOWN: &[(Test, &[&str])] = &[
    (server::workers, &["server.workers"]),
    (server::http_port, &["server.http_port"]),
    (server::tcp_nodelay, &["server.tcp_nodelay"]),
    (server::tcp_keepalive, &["server.tcp_keepalive"]),
    (server::trusted_proxies, &["server.trusted_proxies"]),
    (server::proxy_protocol, &["server.proxy_protocol"]),
    (server::client_header, &["server.client_header"]),
    (server::backlog, &["server.backlog"]),
    (server::driver, &["server.driver"]),
    (server::accept, &["server.accept"]),
    (server::order, &["server.order"]),
    (server::pin, &["server.pin"]),
    (server::drain_timeout, &["server.drain_timeout"]),
    (server::address, &["listen.address"]),
    (server::mode, &["listen.mode"]),
    (performance::max_connections, &["performance.max_connections"]),
    (performance::request_buffer_size, &["performance.request_buffer_size"]),
    (performance::response_buffer_size, &["performance.response_buffer_size"]),
    (performance::cache, &["cache.enabled", "cache.bytes_max", "cache.entries_max", "cache.file_bytes_max"]),
    (performance::hashed_bytes_max, &["cache.hashed_bytes_max"]),
    (performance::level, &["logging.level"]),
    (diagnostics::format, &["logging.format"]),
    (
        guards::rate_limit,
        &[
            "site.rate_limit",
            "site.route.rate_limit",
            "rate_limit.requests",
            "rate_limit.per",
            "rate_limit.burst",
        ],
    ),
    (log::access, &["log.access"]),
    (log::format, &["log.format"]),
    (log::exclude_paths, &["log.exclude_paths"]),
    (log::exclude_statuses, &["log.exclude_statuses"]),
    (admin::listen, &["admin.listen"]),
    (admin::remote, &["admin.remote"]),
    (
        limits::sizes_of_requests,
        &["limits.head_bytes_max", "limits.target_bytes_max", "limits.fields_max", "limits.body_bytes_max"],
    ),
    (limits::buffered_bytes_max, &["limits.buffered_bytes_max"]),
    (limits::connections_per_address_max, &["limits.connections_per_address_max"]),
    (limits::requests_per_connection_max, &["limits.requests_per_connection_max"]),
    (limits::send_bytes_per_second_min, &["limits.send_bytes_per_second_min"]),
    (limits::linger_bytes_max, &["limits.linger_bytes_max"]),
    (
        limits::stalled_requests,
        &[
            "performance.connection_timeout",
            "performance.keep_alive_timeout",
            "timeouts.head",
            "timeouts.body",
            "timeouts.body_grace",
            "limits.body_bytes_per_second_min",
        ],
    ),
    (limits::write, &["timeouts.write"]),
    (limits::linger, &["timeouts.linger"]),
    (limits::drain_idle, &["timeouts.drain_idle"]),
    (tls::addresses, &["server.https_port", "listen.tls"]),
    (
        tls::certificates,
        &["site.tls", "tls.cert", "tls.key", "tls.client_ca", "tls.storage", "acme.directory"],
    ),
    (tls::files, &["tls.ticket_keys", "acme.ca"]),
    (tls::min_version, &["tls.min_version"]),
    (server::http2_prior_knowledge, &["server.http2_prior_knowledge"]),
    (limits::streams_max, &["limits.streams_max"]),
    (tls::protocols, &["tls.protocols"]),
    (tls::strict_sni, &["tls.strict_sni"]),
    (tls::redirect_port, &["tls.redirect_port"]),
    (tls::acme_account, &["acme.email", "acme.eab", "acme.agree_to_terms", "eab.kid", "eab.hmac"]),
    (tls::http, &["site.http"]),
    (tls::hsts, &["site.hsts", "hsts.max_age", "hsts.subdomains", "hsts.preload"]),
];

/// Returns all keys with their sections, from the generated page.
fn keys() -> BTreeSet<String> {
    let page = shearwater_config::page();
    let mut keys = BTreeSet::new();
    let mut section = String::new();
    for line in page.lines() {
        let quoted = line.split('`').nth(1).unwrap_or_default();
        if line.starts_with("## ") {
            section = quoted.trim_matches(['[', ']']).to_owned();
        } else if !section.is_empty() && line.starts_with("| `") {
            keys.insert(format!("{section}.{quoted}"));
        }
    }
    // Routes have all keys of sites except these.
    let of_routes = keys.iter().filter_map(|key| key.strip_prefix("site."));
    let of_routes = of_routes
        .filter(|key| !key.contains('.') && !["hosts", "headers", "tls", "http", "hsts"].contains(key));
    let of_routes: Vec<String> = of_routes.map(|key| format!("site.route.{key}")).collect();
    keys.extend(of_routes);
    keys
}

#[test]
fn every_key_has_a_test() {
    let of_server = SHOWN.iter().flat_map(|(_, keys)| keys.iter().copied());
    let shown = of_server.chain(sites::keys_shown());
    let shown: BTreeSet<String> = shown.map(ToOwned::to_owned).collect();
    let keys = keys();
    assert!(keys.len() > 70, "the page could not be read: {keys:?}");
    let missing: Vec<_> = keys.difference(&shown).collect();
    assert!(missing.is_empty(), "no test shows the effect of {missing:?}");
    let unknown: Vec<_> = shown.difference(&keys).collect();
    assert!(unknown.is_empty(), "there is no such key: {unknown:?}");
}
