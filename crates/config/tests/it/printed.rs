//! The default configuration, the one in effect, and the page of the documentation.

use shearwater_config::{Config, page, print_default, print_effective};
use testkit::random::{Rng, part};

use crate::right;

/// Lines of a section, at most one of each row.
type Rows = &'static [&'static [&'static str]];

const ONCE: &[(&str, Rows)] = &[
    (
        "server",
        &[
            &["workers = 0", "workers = 7"],
            &["http_port = 0", "http_port = 81"],
            &["https_port = 0", "https_port = 82"],
            &["http2_prior_knowledge = true"],
            &["tcp_nodelay = false"],
            &["tcp_keepalive = true"],
            &["backlog = 1"],
            &["driver = \"epoll\"", "driver = \"${EMPTY:-uring}\""],
            &["accept = \"dispatch\""],
            &["pin = true"],
            &["drain_timeout = 0"],
        ],
    ),
    (
        "performance",
        &[
            &["max_connections = 1", "max_connections = 2000000"],
            &["connection_timeout = 1", "connection_timeout = \"1500ms\""],
            &["request_buffer_size = 8192"],
            &["response_buffer_size = 1024"],
        ],
    ),
    (
        "limits",
        &[&["head_bytes_max = 64"], &["body_bytes_max = 0"], &["fields_max = 3"], &["streams_max = 1"]],
    ),
    ("timeouts", &[&["head = \"1ms\""], &["drain_idle = 0"]]),
    ("cache", &[&["enabled = false"], &["bytes_max = 70000", "bytes_max = \"1MB\""], &["entries_max = 1"]]),
    ("logging", &[&["level = \"off\"", "level = \"${EMPTY:-debug}\""], &["format = \"json\""]]),
    (
        "log",
        &[
            &["access = \"-\"", "access = \"syslog:/dev/log\"", "access = \"${DIR}/access.log\""],
            &["format = \"json\"", "format = \"$uri $${status} ${DIR}\""],
            &["exclude_paths = [\"/a\", \"/${DIR}\"]"],
            &["exclude_statuses = [\"2xx\", \"5xx\"]"],
        ],
    ),
    (
        "tls",
        &[
            &["min_version = \"1.3\"", "min_version = \"${EMPTY:-1.2}\""],
            &["protocols = [\"http/1.1\"]", "protocols = [\"http/1.1\", \"${EMPTY:-h2}\"]"],
            &["strict_sni = true"],
            &["ticket_keys = \"${DIR}/tickets\""],
            &["storage = \"/var/lib/x\""],
        ],
    ),
    (
        "acme",
        &[
            &["email = \"a@${DIR}.org\""],
            &["directory = \"letsencrypt-staging\"", "directory = \"https://${DIR}.org/x\""],
            &["ca = \"ca.pem\""],
            &["eab = { kid = \"k\", hmac = \"${SECRET}\" }"],
            &["agree_to_terms = false"],
        ],
    ),
    ("admin", &[&["listen = \"127.0.0.1:9180\"", "listen = \"unix:${DIR}/admin.sock\""], &["remote = true"]]),
];

const SERVING: Rows = &[
    &["index = []", "index = [\"a.html\", \"${DIR}.html\"]"],
    &[
        "spa = \"/i.html\"",
        "spa = false",
        "try_files = []",
        "try_files = [\"{path}\", \"/${DIR}\", \"= 404\"]",
    ],
    &["clean_urls = true", "clean_urls = false"],
    &["hidden = \"serve\"", "hidden = \"deny\""],
    &["symlinks = \"never\""],
    &["listing = true", "listing = false"],
    &["precompressed = []", "precompressed = [\"gzip\", \"br\"]"],
    &["compress = true", "compress = false"],
    &["mime = { foo = \"a/b\", \"é x\" = \"c/d; e=\\\"f\\\"\" }", "mime = { bar = \"${DIR}/x\" }"],
    &["error_pages = { 404 = \"/4.html\" }", "error_pages = { 500 = \"/${SECRET}\", 404 = \"/5.html\" }"],
    &[
        "cache_control = [{ type = \"image/*\", value = \"${SECRET}\" }, { path = \"*.x\", value = \"a\" }]",
        "cache_control = []",
    ],
    &[
        "headers = { set = { A-B = \"${SECRET}\", c = \"x $${y} \\\\ \\\"\" }, remove = [\"Server\"] }",
        "headers.remove = [\"Via\"]",
    ],
];

const ENCRYPTION: Rows = &[
    &[
        "tls = \"auto\"",
        "tls = \"${EMPTY:-self-signed}\"",
        "tls = { cert = \"${DIR}.pem\", key = \"/k.pem\", client_ca = \"${DIR}/ca\" }",
        "tls = { cert = \"a\", key = \"b\" }",
    ],
    &["http = \"redirect\"", "http = \"serve\""],
    &[
        "hsts = \"${EMPTY:-1y}\"",
        "hsts = 300",
        "hsts = false",
        "hsts = { max_age = \"730d\", subdomains = true, preload = true }",
    ],
];

fn one<'a>(random: &mut Rng, of: &[&'a str]) -> &'a str {
    of[random.usize(..of.len())]
}

fn some(random: &mut Rng, rows: Rows, text: &mut String) {
    for row in rows {
        if random.bool() {
            text.push_str(one(random, row));
            text.push('\n');
        }
    }
}

fn configuration(random: &mut Rng) -> String {
    let mut text = String::new();
    for (name, rows) in ONCE {
        text.push_str(&format!("[{name}]\n"));
        some(random, rows, &mut text);
    }
    for listener in 0..random.u8(..3) {
        let address = match random.u8(..3) {
            0 => format!("127.0.0.1:{}", 1000 + u16::from(listener)),
            1 => format!("unix:${{DIR}}/{listener}.sock"),
            _ => format!("[::]:{}", 2000 + u16::from(listener)),
        };
        text.push_str(&format!("[[listen]]\naddress = \"{address}\"\n"));
        if address.starts_with("unix") {
            text.push_str(one(random, &["", "mode = \"0600\"\n"]));
        }
        text.push_str(one(random, &["", "tls = true\n"]));
    }
    for site in 0..random.u8(..4) {
        let root = one(random, &["root = \"${DIR}\"", "root = \"/srv/x\"", "root = \"../y\""]);
        text.push_str(&format!("[[site]]\nhosts = [\"*.s{site}.org\", \"${{DIR}}{site}.org\"]\n{root}\n"));
        some(random, ENCRYPTION, &mut text);
        some(random, SERVING, &mut text);
        for redirect in 0..random.u8(..3) {
            let to = one(random, &["/new", "/new/{rest}", "https://${DIR}.org/"]);
            let status = one(random, &["", "status = 301\n", "status = 308\n"]);
            text.push_str(&format!("[[site.redirect]]\nfrom = \"/r{redirect}/*\"\nto = \"{to}\"\n{status}"));
        }
        for route in 0..random.u8(..4) {
            text.push_str(&format!("[[site.route]]\npath = \"/${{DIR}}/{route}/*\"\n"));
            if random.u8(..4) == 0 {
                text.push_str("respond = { status = 404, body = \"a\\nb ${SECRET}\" }\n");
            } else {
                text.push_str(one(random, &["", "strip_prefix = true\n"]));
                some(random, SERVING, &mut text);
            }
        }
    }
    text
}

#[test]
fn parses_the_effective_configuration_to_the_same() {
    let mut lines = 0;
    for seed in 1..=500 {
        let text = configuration(&mut part(seed, 0));
        let config = right(&text);
        let printed = print_effective(&config);
        let again = right(&printed);
        assert_eq!(again, config, "seed {seed}:\n{text}\n---\n{printed}");
        assert_eq!(print_effective(&again), printed, "seed {seed}:\n{text}");
        assert!(!printed.contains("hunter2"), "seed {seed}:\n{printed}");
        lines += printed.lines().count();
    }
    assert!(lines > 500 * 50, "{lines}");
}

#[test]
fn parses_the_default_configuration_to_the_defaults() {
    assert_eq!(right(&print_default()), Config::default());
    assert_eq!(right(&print_effective(&Config::default())), Config::default());
}

#[test]
fn parses_commented_keys() {
    let text = print_default();
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') && !key.is_empty() => key,
            _ => line,
        })
        .collect();
    let config = right(&uncommented.join("\n"));
    assert_eq!((config.listen.len(), config.sites.len()), (1, 1));
    assert_eq!((config.sites[0].redirects.len(), config.sites[0].routes.len()), (1, 1));
    assert_eq!(config.server.http_port, Some(8080));
}

#[test]
fn documents_every_section() {
    let (text, page) = (print_default(), page());
    for (heading, in_text) in [
        ("`[server]`", "[server]"),
        ("`[performance]`", "[performance]"),
        ("`[limits]`", "[limits]"),
        ("`[timeouts]`", "[timeouts]"),
        ("`[cache]`", "[cache]"),
        ("`[logging]`", "[logging]"),
        ("`[log]`", "[log]"),
        ("`[admin]`", "[admin]"),
        ("`[[listen]]`", "#[[listen]]"),
        ("`[[site]]`", "#[[site]]"),
        ("`[[site.redirect]]`", "#[[site.redirect]]"),
        ("`[[site.route]]`", "#[[site.route]]"),
        ("`rate_limit`, an inline table", ""),
        ("`basic_auth`, an inline table", ""),
        ("`cors`, an inline table", ""),
        ("`headers`, an inline table", ""),
        ("`cache_control`, an inline table", ""),
        ("`respond`, an inline table", ""),
        ("`tls`, an inline table", ""),
        ("`hsts`, an inline table", ""),
        ("`eab`, an inline table", ""),
    ] {
        assert!(page.contains(&format!("\n## {heading}\n")), "{heading}");
        assert!(text.contains(&format!("\n{in_text}\n")), "{in_text}");
    }
    let (_, sections) = page.split_once("\n## ").expect("sections");
    assert_eq!(sections.lines().filter(|line| line.starts_with("| `")).count(), 125);
}

#[test]
fn wraps_lines_at_100_characters() {
    for line in print_default().lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_page_is_up_to_date() {
    let file = include_str!("../../../../docs/configuration.md");
    assert!(file == page(), "run cargo run -p shearwater-config --example page > docs/configuration.md");
}
