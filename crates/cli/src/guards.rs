//! Guards of sites: the keys of the configuration as options, with their htpasswd files read.

use std::collections::HashMap;
use std::path::PathBuf;

use shearwater::{Cors, TrustedProxies};
use shearwater_config::{self as config, Finding, Guarding};
use shearwater_files::Coding;
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

    /// Returns the htpasswd files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.users.keys().map(|(file, _)| file.clone()).collect()
    }

    fn error(&mut self, key: String, message: String, help: String) {
        self.errors.push(Finding { key, message, help: Some(help).filter(|help| !help.is_empty()) });
    }
}

/// Returns the errors of a route whose guards leave open what they look like guarding.
pub(crate) fn leaks(of: &str, route: &config::Route, site: &Guarding) -> Option<Finding> {
    let keys = &route.guarding;
    let restricts = keys.basic_auth.is_some() || !keys.allow.is_empty() || !keys.deny.is_empty();
    let root = route.serving.root.as_ref().filter(|_| restricts && keys != site && !route.strip_prefix)?;
    if route.path.ends_with('*') {
        return None;
    }
    let path = route.path.trim_end_matches('/');
    let file = root.join(path.trim_start_matches('/'));
    let error = |message, help| Some(Finding { key: format!("{of}.path"), message, help: Some(help) });
    if file.is_dir() {
        let message = format!("`{}` alone is guarded, and the files in that folder are open", route.path);
        return error(message, format!("`path = \"{path}/*\"` guards all of it"));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if route.serving.index.iter().any(|index| index == name) {
        let folder = &path[..path.len() - name.len()];
        let message = format!("`{path}` alone is guarded, and `{folder}` sends the same file");
        return error(message, format!("`path = \"{folder}*\"` guards the folder"));
    }
    let is_fallback = route.serving.spa.as_deref() == Some(path);
    if file.is_file() && (is_fallback || route.serving.clean_urls || !route.serving.try_files.is_empty()) {
        let message = format!("`{path}` alone is guarded, and other paths may send the same file");
        let help = "`clean_urls`, `try_files` and `spa` do that: guard the folder";
        return error(message, help.to_owned());
    }
    let is_sibling = |coding: &Coding| {
        let mut sibling = file.clone().into_os_string();
        sibling.push(coding.extension());
        PathBuf::from(sibling).exists()
    };
    let coding = Coding::ALL.into_iter().find(is_sibling)?;
    let message = format!("`{path}` alone is guarded, and `{path}{}` beside it is open", coding.extension());
    error(message, "guard the folder, or add a route for each of them".to_owned())
}

/// Describes the guards of a table in a line; `None` without any.
pub(crate) fn describe(keys: &Guarding) -> Option<String> {
    let mut parts = Vec::new();
    if !keys.allow.is_empty() {
        parts.push(format!("allow {}", keys.allow.join(", ")));
    }
    if !keys.deny.is_empty() {
        parts.push(format!("deny {}", keys.deny.join(", ")));
    }
    if let Some(limit) = &keys.rate_limit {
        parts.push(format!("{} requests per {:?}", limit.requests, limit.per));
    }
    if let Some(auth) = &keys.basic_auth {
        parts.push(format!("password of {}", auth.file.display()));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
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
