//! Which keys of a configuration say something other than the default.

use crate::config::Config;
use crate::fields::Fields;
use crate::reading::Written;
use crate::rows::rows;

/// A key that says something other than its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// With its place in lists: `site[0].root`.
    pub key: String,
    /// Without: `site.root`.
    pub name: String,
}

impl Config {
    /// The keys that say something other than their default, in the order of the page. Each redirect and route is one.
    #[must_use]
    pub fn changed(&self) -> Vec<Changed> {
        let mut changed = Vec::new();
        add(&mut changed, &self.server, "server", "server");
        add(&mut changed, &self.performance, "performance", "performance");
        add(&mut changed, &self.limits, "limits", "limits");
        add(&mut changed, &self.timeouts, "timeouts", "timeouts");
        add(&mut changed, &self.cache, "cache", "cache");
        add(&mut changed, &self.logging, "logging", "logging");
        for (index, listen) in self.listen.iter().enumerate() {
            add(&mut changed, listen, &format!("listen[{index}]"), "listen");
        }
        for (index, site) in self.sites.iter().enumerate() {
            let key = format!("site[{index}]");
            add(&mut changed, site, &key, "site");
            list(&mut changed, site.redirects.len(), &key, "redirect");
            list(&mut changed, site.routes.len(), &key, "route");
        }
        changed
    }
}

fn add<T: Fields>(changed: &mut Vec<Changed>, section: &T, key: &str, name: &str) {
    let written = Written::new();
    let pairs = rows(section, key, &written).into_iter().zip(rows(&T::default(), key, &written));
    for (row, _) in pairs.filter(|(row, default)| row.value != default.value) {
        changed.push(Changed { key: format!("{key}.{}", row.name), name: format!("{name}.{}", row.name) });
    }
}

fn list(changed: &mut Vec<Changed>, len: usize, key: &str, name: &str) {
    let one = |index| Changed { key: format!("{key}.{name}[{index}]"), name: format!("site.{name}") };
    changed.extend((0..len).map(one));
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn what_is_other_than_the_default_is_named() {
        let text = "[server]\nworkers = 0\npin = true\n[[site]]\nroot = \".\"\nlisting = false\n[[site.route]]\npath = \"/a\"\n";
        let config = Config::parse("x.toml".as_ref(), text, |_| None).expect("it is right");
        let changed: Vec<(String, String)> =
            config.changed().into_iter().map(|changed| (changed.key, changed.name)).collect();
        let expected =
            [("server.pin", "server.pin"), ("site[0].root", "site.root"), ("site[0].route[0]", "site.route")];
        assert_eq!(changed, expected.map(|(key, name)| (key.to_owned(), name.to_owned())));
        assert!(Config::default().changed().is_empty());
    }
}
