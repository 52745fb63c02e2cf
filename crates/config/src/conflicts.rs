//! What is right by itself but not together: ports, hosts and paths that are taken twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;

use toml::de::DeTable;

use crate::config::Config;
use crate::locate::locate;
use crate::reading::Reading;
use crate::sections::listen::Address;
use crate::sections::site::Site;

/// Finds them. What has a problem of its own is left out.
pub(crate) fn find(config: &Config, table: &DeTable<'_>, reading: &mut Reading<'_>) {
    let mut conflicts = Conflicts { table, reading };
    conflicts.listeners(config);
    conflicts.hosts(&config.sites);
    for (index, site) in config.sites.iter().enumerate() {
        conflicts.paths(&format!("site[{index}]"), site);
    }
}

struct Conflicts<'a, 'r, 'e> {
    table: &'a DeTable<'a>,
    reading: &'r mut Reading<'e>,
}

impl Conflicts<'_, '_, '_> {
    fn problem(&mut self, key: &str, what: String) {
        let span = locate(self.table, key);
        self.reading.problem_of(key, &span, what);
    }

    fn listeners(&mut self, config: &Config) {
        for (index, listen) in config.listen.iter().enumerate() {
            let key = format!("listen[{index}].address");
            if !self.reading.is_sound(&format!("listen[{index}]")) {
                continue;
            }
            if let (Some(port @ 1..), Address::Tcp(address)) = (config.server.http_port, &listen.address)
                && address.port() == port
            {
                let what =
                    format!("server.http_port = {port} listens on all addresses already: keep one of both");
                self.problem(&key, what);
                continue;
            }
            let mut earlier = config.listen[..index].iter().enumerate();
            if let Some((other, _)) = earlier.find(|(_, earlier)| overlap(&earlier.address, &listen.address))
            {
                let address =
                    self.reading.shown(&format!("listen[{other}].address"), &config.listen[other].address);
                let taken = format!("listen[{other}] listens there already ({address})");
                self.problem(&key, taken);
            }
        }
    }

    fn hosts(&mut self, sites: &[Site]) {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        let mut default = None;
        for (index, site) in sites.iter().enumerate() {
            if !self.reading.is_sound(&format!("site[{index}].hosts")) {
                continue;
            }
            if site.hosts.is_empty() {
                match default {
                    None => default = Some(index),
                    Some(first) => {
                        let what = format!(
                            "site[{first}] has no `hosts` either: only one site is for all other names"
                        );
                        self.problem(&format!("site[{index}]"), what);
                    }
                }
            }
            for (number, host) in site.hosts.iter().enumerate() {
                match taken.entry(host) {
                    Entry::Vacant(free) => drop(free.insert(index)),
                    Entry::Occupied(first) => {
                        let key = format!("site[{index}].hosts[{number}]");
                        let host = self.reading.shown(&key, host);
                        let what = format!("site[{}] is for {host} already", first.get());
                        self.problem(&key, what);
                    }
                }
            }
        }
    }

    fn paths(&mut self, site_key: &str, site: &Site) {
        let routes = site.routes.iter().map(|route| &route.path);
        self.once(site_key, "route", "path", routes);
        let redirects = site.redirects.iter().map(|redirect| &redirect.from);
        self.once(site_key, "redirect", "from", redirects);
        let has_sound_root = self.reading.is_sound(&format!("{site_key}.root"));
        for (index, route) in site.routes.iter().enumerate() {
            let key = format!("{site_key}.route[{index}]");
            let answers = route.respond.is_some() || route.serving.root.is_some();
            if !answers && has_sound_root && self.reading.is_sound(&key) {
                let what = "neither it nor its site has a `root`, and it has no `respond`".to_owned();
                self.problem(&key, what);
            }
        }
    }

    /// No path stands twice among those of a site's routes, or its redirects.
    fn once<'p>(
        &mut self,
        site_key: &str,
        list: &str,
        name: &str,
        paths: impl Iterator<Item = &'p crate::sections::route::Pattern>,
    ) {
        let mut taken = HashMap::new();
        for (index, path) in paths.enumerate() {
            let key = format!("{site_key}.{list}[{index}]");
            if !self.reading.is_sound(&key) {
                continue;
            }
            match taken.entry(path) {
                Entry::Vacant(free) => drop(free.insert(index)),
                Entry::Occupied(first) => {
                    let key = format!("{key}.{name}");
                    let path = self.reading.shown(&key, path);
                    let what = format!("{site_key}.{list}[{}] has {path} already", first.get());
                    self.problem(&key, what);
                }
            }
        }
    }
}

/// Whether the kernel would refuse the second where the first is bound.
fn overlap(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Unix(one), Address::Unix(other)) => one == other,
        (Address::Tcp(one), Address::Tcp(other)) => {
            let is_same_port = one.port() == other.port() && one.port() != 0;
            is_same_port && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
        }
        _ => false,
    }
}

/// An address that means all: that of IPv6 means those of IPv4 too.
fn covers(all: &SocketAddr, one: &SocketAddr) -> bool {
    all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}
