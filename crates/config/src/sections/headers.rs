//! `headers`: response headers that are set or removed.

use std::collections::BTreeMap;

use crate::checks::{field_name, field_value};
use crate::context::Context;
use crate::rules::{List, Map, Text};
use crate::section::{Table, section};

section! {
    /// Response headers that are set or removed.
    Headers {
        set: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table of headers, such as { X-Frame-Options = \"DENY\" }", name_to_set, Text("a header value", field_value)),
            "Headers to set, replacing those of the same name. Headers on caching, such as Cache-Control, are left out of errors. Content-… \
             headers are set with 2xx and 304 only. Content-Security-Policy applies to the site's own content; folder listings and built-in \
             error pages have their own policy.";
        remove: Vec<String> = Vec::new(), List(Text("a header name", name_to_remove)),
            "Headers to remove from every response, such as Server.";
    }

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        let mut names: Vec<String> = self.set.keys().map(|name| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        for _ in names.windows(2).filter(|pair| pair[0] == pair[1]) {
            table.error(context, "set", "a header is set twice", "header names are case-insensitive: keep one");
        }
        let is_set = |name: &&String| names.contains(&name.to_ascii_lowercase());
        for _ in self.remove.iter().filter(is_set) {
            let help = "a header that is set replaces the original: remove it from `remove`";
            table.error(context, "remove", "a header is both set and removed", help);
        }
    }

    fn example() -> Self {
        let set = [("X-Frame-Options".to_owned(), "DENY".to_owned())];
        Self { set: BTreeMap::from(set), remove: vec!["Server".to_owned()] }
    }
}

/// Headers that can't be changed, each with the reason.
const OWN: &[(&[&str], &str)] = &[
    (
        &["connection", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"],
        "is set by the server: it frames the message",
    ),
    (&["date"], "is set by the server"),
    (&["content-type"], "belongs to the content: set `mime` for files, `respond.type` for a fixed response"),
    (&["allow", "content-encoding", "content-range", "location"], "belongs to the response"),
];

/// Headers that can be removed, but not set.
const OWN_VALUE: &[(&[&str], &str)] =
    &[(&["etag", "last-modified"], "identifies the version of the content, which only the server knows")];

/// Headers that can be added to, but not removed.
const NEEDED: &[(&[&str], &str)] =
    &[(&["vary"], "keeps shared caches from sending one client's response to another")];

fn name_to_set(name: &str) -> Result<String, String> {
    name_except(name, OWN_VALUE)
}

fn name_to_remove(name: &str) -> Result<String, String> {
    name_except(name, NEEDED)
}

fn name_except(name: &str, more: &[(&[&str], &str)]) -> Result<String, String> {
    let plain = name.to_ascii_lowercase();
    if let Some((_, why)) = OWN.iter().chain(more).find(|(names, _)| names.contains(&plain.as_str())) {
        return Err((*why).to_owned());
    }
    field_name(name)
}
