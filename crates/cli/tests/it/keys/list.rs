//! The test of each key's effect. A key without a test is an error.

use std::collections::BTreeSet;

use super::{cache, limits, listen, logging, performance, rates, server, tcp, timeouts};
use crate::sites;

/// Keys of the server. Those of sites are in `tests/sites.md`.
const SHOWN: &[(&str, fn())] = &[
    ("server.workers", server::workers),
    ("server.http_port", server::http_port),
    ("server.tcp_nodelay", tcp::tcp_nodelay),
    ("server.tcp_keepalive", tcp::tcp_keepalive),
    ("server.trusted_gateway", server::trusted_gateway),
    ("server.backlog", tcp::backlog),
    ("server.driver", server::driver),
    ("server.accept", server::accept),
    ("server.order", server::order),
    ("server.pin", server::pin),
    ("server.drain_timeout", server::drain_timeout),
    ("performance.max_connections", performance::max_connections),
    ("performance.connection_timeout", performance::connection_timeout),
    ("performance.keep_alive_timeout", performance::keep_alive_timeout),
    ("performance.request_buffer_size", performance::request_buffer_size),
    ("performance.response_buffer_size", performance::response_buffer_size),
    ("limits.head_bytes_max", limits::head_bytes_max),
    ("limits.target_bytes_max", limits::target_bytes_max),
    ("limits.fields_max", limits::fields_max),
    ("limits.body_bytes_max", limits::body_bytes_max),
    ("limits.buffered_bytes_max", limits::buffered_bytes_max),
    ("limits.connections_per_address_max", limits::connections_per_address_max),
    ("limits.requests_per_connection_max", limits::requests_per_connection_max),
    ("limits.body_bytes_per_second_min", rates::body_bytes_per_second_min),
    ("limits.send_bytes_per_second_min", rates::send_bytes_per_second_min),
    ("limits.linger_bytes_max", limits::linger_bytes_max),
    ("timeouts.head", timeouts::head),
    ("timeouts.body", timeouts::body),
    ("timeouts.body_grace", rates::body_grace),
    ("timeouts.write", timeouts::write),
    ("timeouts.linger", timeouts::linger),
    ("timeouts.drain_idle", timeouts::drain_idle),
    ("cache.enabled", cache::enabled),
    ("cache.bytes_max", cache::bytes_max),
    ("cache.entries_max", cache::entries_max),
    ("cache.file_bytes_max", cache::file_bytes_max),
    ("logging.level", logging::level),
    ("listen.address", listen::address),
    ("listen.mode", listen::mode),
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
    let of_sites = sites::keys_shown();
    let shown: BTreeSet<String> =
        SHOWN.iter().map(|(key, _)| *key).chain(of_sites).map(ToOwned::to_owned).collect();
    let keys = keys();
    assert!(keys.len() > 70, "the page could not be read: {keys:?}");
    let missing: Vec<_> = keys.difference(&shown).collect();
    assert!(missing.is_empty(), "no test shows the effect of {missing:?}");
    let unknown: Vec<_> = shown.difference(&keys).collect();
    assert!(unknown.is_empty(), "there is no such key: {unknown:?}");
}
