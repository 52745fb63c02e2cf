//! Guards of sites: the keys of the configuration as options, with their htpasswd files read.

use std::collections::HashMap;
use std::path::PathBuf;

use shearwater::{Cors, TrustedProxies};
use shearwater_config::{self as config, Finding, Guarding};
use shearwater_guards::{BasicAuth, Networks, Rate, RateLimit};
use shearwater_site::{Guards, SiteCors};

/// Guards of a configuration. Each htpasswd file is read once, and each limit of a site has one table.
#[derive(Default)]
pub(crate) struct GuardsPlan {
    /// Users by file and realm; `None` if the file has an error, which is reported once.
    users: HashMap<(PathBuf, String), Option<BasicAuth>>,
    /// The limit of the present site.
    limit: Option<(config::RateLimit, RateLimit)>,
    pub(crate) errors: Vec<Finding>,
}

impl GuardsPlan {
    /// Returns the guards of a site, whose routes follow. `of` is its key.
    pub(crate) fn of_site(&mut self, of: &str, keys: &Guarding) -> Guards {
        self.limit = None;
        let guards = self.guards(of, keys);
        self.limit = keys.rate_limit.clone().zip(guards.rate_limit.clone());
        guards
    }

    /// Returns the guards of a route, unless they are those of its site.
    pub(crate) fn of_route(&mut self, of: &str, keys: &Guarding, site: &Guarding) -> Option<Guards> {
        let own = Guarding { security_headers: site.security_headers, ..keys.clone() };
        (own != *site).then(|| self.guards(of, keys))
    }

    fn guards(&mut self, of: &str, keys: &Guarding) -> Guards {
        Guards {
            networks: self.networks(of, keys),
            rate_limit: self.rate_limit(of, keys),
            cors: keys.cors.as_ref().map(cors),
            basic_auth: keys.basic_auth.as_ref().and_then(|auth| self.basic_auth(of, auth)),
        }
    }

    fn networks(&mut self, of: &str, keys: &Guarding) -> Option<Networks> {
        for (name, entries) in [("allow", &keys.allow), ("deny", &keys.deny)] {
            if let Err(wrong) = TrustedProxies::new(entries) {
                let key = format!("{of}.{name}[{}]", wrong.index);
                self.error(key, wrong.reason().to_owned(), wrong.help().to_owned());
            }
        }
        let is_open = keys.allow.is_empty() && keys.deny.is_empty();
        // Errors keep the server from starting.
        Networks::new(&keys.allow, &keys.deny).ok().filter(|_| !is_open)
    }

    fn rate_limit(&mut self, of: &str, keys: &Guarding) -> Option<RateLimit> {
        let own = keys.rate_limit.as_ref()?;
        if let Some((known, limit)) = &self.limit
            && known == own
        {
            return Some(limit.clone());
        }
        let rate = Rate { requests: own.requests, per: own.per, burst: own.burst.unwrap_or(own.requests) };
        let limit = RateLimit::new(rate);
        if let Err(wrong) = &limit {
            self.error(format!("{of}.rate_limit"), wrong.to_string(), String::new());
        }
        limit.ok()
    }

    fn basic_auth(&mut self, of: &str, auth: &config::BasicAuth) -> Option<BasicAuth> {
        let key = (auth.file.clone(), auth.realm.clone());
        if let Some(known) = self.users.get(&key) {
            return known.clone();
        }
        let opened = BasicAuth::open(&auth.file, &auth.realm);
        if let Err(wrong) = &opened {
            let line = wrong.line.map(|line| format!(":{line}")).unwrap_or_default();
            let message = format!("{}{line}: {}", auth.file.display(), wrong.message);
            self.error(format!("{of}.basic_auth"), message, wrong.help.clone());
        }
        self.users.entry(key).or_insert(opened.ok()).clone()
    }

    fn error(&mut self, key: String, message: String, help: String) {
        self.errors.push(Finding { key, message, help: Some(help).filter(|help| !help.is_empty()) });
    }
}

/// Returns a policy for other origins.
fn cors(keys: &config::Cors) -> SiteCors {
    let config::Cors { origins, methods, headers, expose, credentials, max_age } = keys;
    let mut policy = if origins.is_empty() { Cors::any() } else { Cors::origins(origins.clone()) };
    if !headers.is_empty() {
        policy = policy.headers(headers.join(", "));
    }
    if !expose.is_empty() {
        policy = policy.expose(expose.join(", "));
    }
    if *credentials {
        policy = policy.credentials();
    }
    if let Some(max_age) = max_age {
        policy = policy.max_age_s(u32::try_from(max_age.as_secs()).unwrap_or(u32::MAX));
    }
    SiteCors { policy, methods: methods.join(", ") }
}

/// Returns the guards of `--cors`: as `cors = true`.
pub(crate) fn any_origin() -> Guards {
    let any = config::Cors { headers: vec!["*".to_owned()], ..config::Cors::default() };
    Guards { cors: Some(cors(&any)), ..Guards::default() }
}
