//! `headers`: response headers that are set or removed.

use std::collections::BTreeMap;

use crate::rules::{List, Map, Text};
use crate::section::section;

section! {
    /// Response headers that are set or removed.
    Headers {
        set: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table of headers, such as { X-Frame-Options = \"DENY\" }", |name| Some(name.to_owned()), Text("a header value")),
            "Headers to set, replacing those of the same name. Headers on caching, such as Cache-Control, are left out of errors. Content-… \
             headers are set with 2xx and 304 only. Content-Security-Policy applies to the site's own content; folder listings and built-in \
             error pages have their own policy.";
        remove: Vec<String> = Vec::new(), List(Text("a header name")),
            "Headers to remove from every response, such as Server.";
    }

    fn example() -> Self {
        let set = [("X-Frame-Options".to_owned(), "DENY".to_owned())];
        Self { set: BTreeMap::from(set), remove: vec!["Server".to_owned()] }
    }
}
