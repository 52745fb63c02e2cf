//! Conflicts between sections: duplicate addresses, routes without content.

use std::net::SocketAddr;

use toml::de::DeTable;

use crate::config::Config;
use crate::context::Context;
use crate::locate::locate;
use crate::sections::listen::Address;
use crate::sections::site::Site;

/// Reports conflicts between keys that are free of errors.
pub(crate) fn find(config: &Config, table: &DeTable<'_>, context: &mut Context<'_>) {
    let mut conflicts = Conflicts { table, context };
    conflicts.listeners(config);
    for (index, site) in config.sites.iter().enumerate() {
        conflicts.routes(&format!("site[{index}]"), site);
    }
}

struct Conflicts<'a, 'c, 'e> {
    table: &'a DeTable<'a>,
    context: &'c mut Context<'e>,
}

impl Conflicts<'_, '_, '_> {
    fn report(&mut self, key: String, message: &str, help: String) {
        let span = locate(self.table, &key);
        self.context.report(key, &span, message.to_owned(), Some(help));
    }

    fn listeners(&mut self, config: &Config) {
        for (index, listen) in config.listen.iter().enumerate() {
            let key = format!("listen[{index}].address");
            if !self.context.is_sound(&format!("listen[{index}]")) {
                continue;
            }
            if let (Some(port @ 1..), Address::Tcp(address)) = (config.server.http_port, &listen.address)
                && address.port() == port
            {
                let help = "`server.http_port` listens on this port on all addresses: remove one of both";
                self.report(key, "duplicate address", help.to_owned());
                continue;
            }
            let mut earlier = config.listen[..index].iter().enumerate();
            if let Some((other, _)) = earlier.find(|(_, earlier)| overlap(&earlier.address, &listen.address))
            {
                self.report(key, "duplicate address", format!("listen[{other}] already listens on it"));
            }
        }
    }

    /// Reports routes without files and without a fixed response.
    fn routes(&mut self, site_key: &str, site: &Site) {
        let has_sound_root = self.context.is_sound(&format!("{site_key}.root"));
        for (index, route) in site.routes.iter().enumerate() {
            let key = format!("{site_key}.route[{index}]");
            let has_content = route.respond.is_some() || route.serving.root.is_some();
            if !has_content && has_sound_root && self.context.is_sound(&key) {
                let help = "add a `root` to it or to its site, or `respond` to it";
                self.report(key, "route without content", help.to_owned());
            }
        }
    }
}

/// Returns whether the kernel would refuse to bind the second after the first.
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

/// Returns whether an unspecified address includes another one. That of IPv6 includes IPv4.
fn covers(all: &SocketAddr, one: &SocketAddr) -> bool {
    all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}
