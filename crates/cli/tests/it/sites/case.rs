//! One site, what it is asked, and what it has to answer.

use crate::client::{Answer, Client};

/// One site.
pub(super) struct Case {
    /// What it is about.
    pub(super) about: &'static str,
    /// The keys whose effect it shows.
    pub(super) keys: &'static [&'static str],
    /// Its host names; empty: one of its own.
    pub(super) hosts: &'static [&'static str],
    /// What stands in the file for it, after the host names.
    pub(super) lines: &'static str,
    pub(super) asks: &'static [Ask],
}

/// A request and what its answer has to be.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    method: &'static str,
    /// Where the name of a host comes first, it is asked for; else the case's own.
    target: &'static str,
    host: Option<&'static str>,
    /// Whole lines; `{etag}` and `{modified}` stand for those of the answer before.
    fields: &'static [&'static str],
    status: u16,
    /// Name and value; none where the value is empty, any where it is `*`, another one after `not `.
    has: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
    holds: &'static [&'static str],
}

/// A `GET`.
pub(super) const fn get(target: &'static str, status: u16) -> Ask {
    ask("GET", target, status)
}

/// Any method.
pub(super) const fn ask(method: &'static str, target: &'static str, status: u16) -> Ask {
    Ask { method, target, host: None, fields: &[], status, has: &[], body: None, holds: &[] }
}

impl Ask {
    pub(super) const fn of(self, host: &'static str) -> Self {
        Self { host: Some(host), ..self }
    }

    pub(super) const fn with(self, fields: &'static [&'static str]) -> Self {
        Self { fields, ..self }
    }

    pub(super) const fn has(self, has: &'static [(&'static str, &'static str)]) -> Self {
        Self { has, ..self }
    }

    /// The whole body.
    pub(super) const fn is(self, body: &'static str) -> Self {
        Self { body: Some(body), ..self }
    }

    /// What is somewhere in the body.
    pub(super) const fn holds(self, holds: &'static [&'static str]) -> Self {
        Self { holds, ..self }
    }
}

/// What an answer said of its version.
#[derive(Default)]
struct Version {
    etag: String,
    modified: String,
}

impl Version {
    fn put_into(&self, text: &str) -> String {
        text.replace("{etag}", &self.etag).replace("{modified}", &self.modified)
    }
}

impl Case {
    fn own_host(number: usize) -> String {
        format!("case-{number}.test")
    }

    /// As it stands in the file.
    pub(super) fn site(&self, number: usize) -> String {
        let own = [Self::own_host(number)];
        let hosts = if self.hosts.is_empty() { format!("{own:?}") } else { format!("{:?}", self.hosts) };
        format!("\n# {}\n[[site]]\nhosts = {hosts}\n{}", self.about, self.lines)
    }

    /// Asks everything, one after the other.
    #[track_caller]
    pub(super) fn check(&self, number: usize, client: &mut Client, driver: &str) {
        let own = Self::own_host(number);
        let mut version = Version::default();
        for ask in self.asks {
            let host = ask.host.unwrap_or(&own);
            let fields: String =
                ask.fields.iter().map(|line| format!("{}\r\n", version.put_into(line))).collect();
            let request = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n", ask.method, ask.target);
            let answer = client.send(&request).answer(ask.method);
            let shown = format!("{} ({driver}): {request}{answer:?}", self.about);
            ask.check(&answer, &version, &shown);
            if let Some(etag) = answer.field("ETag") {
                let modified = answer.field("Last-Modified").unwrap_or_default().to_owned();
                version = Version { etag: etag.to_owned(), modified };
            }
        }
    }
}

impl Ask {
    #[track_caller]
    fn check(&self, answer: &Answer, before: &Version, shown: &str) {
        assert_eq!(answer.status, self.status, "{shown}");
        for (name, value) in self.has {
            let found = answer.field(name).unwrap_or_default();
            let value = before.put_into(value);
            match value.strip_prefix("not ") {
                _ if value == "*" => assert_ne!(found, "", "{name}: {shown}"),
                Some(other) => assert!(found != other && !found.is_empty(), "{name}: {shown}"),
                None => assert_eq!(found, value, "{name}: {shown}"),
            }
        }
        let vary: Vec<_> =
            answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Vary")).collect();
        let is_once = |(at, field): (usize, _)| !vary[..at].contains(field);
        assert!(vary.iter().enumerate().all(is_once), "a Vary is repeated: {shown}");
        if let Some(body) = self.body {
            assert_eq!(answer.text(), body, "{shown}");
        }
        for part in self.holds {
            assert!(answer.text().contains(part), "{part:?}: {shown}");
        }
    }
}
