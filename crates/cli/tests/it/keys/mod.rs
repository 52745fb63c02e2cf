//! A test of each key's effect on the running server. A key without a test is an error.
//!
//! Each test changes its key and nothing else that could have the same effect. Timeouts are recognized by the limits that the server
//! reports, not by a clock.

mod limits;
mod performance;
mod server;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use crate::process::{Serving, Temporary, drivers, program};
use crate::sites;

/// A site of one folder.
pub(crate) const SITE: &str = "[[site]]\nroot = \"www\"\n";

/// Less than the shortest default timeout (10 s), and much more than the timeouts set here.
const SOONER_THAN_DEFAULTS: Duration = Duration::from_secs(9);

/// Returns a folder with a site and its configuration.
pub(crate) fn folder(config: &str) -> Temporary {
    let folder = Temporary::new();
    folder.file("www/index.html", "index").file("www/f.txt", "content");
    folder.file("site.toml", config);
    folder
}

/// Serves [`SITE`] with settings on each driver.
fn on_each_driver(settings: &str, check: impl Fn(&Temporary, Serving)) {
    for driver in drivers() {
        println!("{driver}: {settings}");
        let folder = folder(&format!("{settings}{SITE}"));
        check(&folder, Serving::start(&folder, &["site.toml", "--driver", driver]));
    }
}

/// Sends bytes on a new connection and returns everything received until it closes, sooner than by any default.
#[track_caller]
fn until_closed(serving: &Serving, bytes: &str) -> String {
    let mut client = serving.connect();
    client.stream.get_ref().set_read_timeout(Some(SOONER_THAN_DEFAULTS)).expect("a timeout");
    client.send(bytes);
    String::from_utf8(client.rest()).expect("text")
}

/// Starts with a configuration for a free port. Retries if another process takes the port.
fn start_on_a_port(config: impl Fn(u16) -> String, driver: &str) -> (Temporary, Serving, u16) {
    for _ in 0..20 {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port").port();
        let folder = folder(&config(port));
        let mut command = program(&folder, &["site.toml", "--driver", driver]);
        let (code, stderr) = match Serving::try_start(&mut command) {
            Ok(serving) => return (folder, serving, port),
            Err(ended) => ended,
        };
        assert!(code == Some(2) && stderr.contains("is taken by another program"), "{stderr}");
    }
    panic!("no port stays free");
}

type Test = fn();

/// Keys of the server and their tests. Those of sites are in `tests/sites.md`.
const SHOWN: &[(Test, &[&str])] = &[
    (server::workers, &["server.workers"]),
    (server::http_port, &["server.http_port"]),
    (server::tcp_nodelay, &["server.tcp_nodelay"]),
    (server::tcp_keepalive, &["server.tcp_keepalive"]),
    (server::trusted_gateway, &["server.trusted_gateway"]),
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
    (performance::level, &["logging.level"]),
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
    let of_routes = of_routes.filter(|key| !key.contains('.') && !["hosts", "headers"].contains(key));
    let of_routes: Vec<String> = of_routes.map(|key| format!("site.route.{key}")).collect();
    keys.extend(of_routes);
    keys
}

#[test]
fn every_key_has_a_test() {
    let of_server = SHOWN.iter().flat_map(|(_, keys)| keys.iter().copied());
    let shown: BTreeSet<String> = of_server.chain(sites::keys_shown()).map(ToOwned::to_owned).collect();
    let keys = keys();
    assert!(keys.len() > 70, "the page could not be read: {keys:?}");
    let missing: Vec<_> = keys.difference(&shown).collect();
    assert!(missing.is_empty(), "no test shows the effect of {missing:?}");
    let unknown: Vec<_> = shown.difference(&keys).collect();
    assert!(unknown.is_empty(), "there is no such key: {unknown:?}");
}
