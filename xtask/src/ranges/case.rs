//! One request, as it is sent to both servers.

use std::fmt;

use super::arguments::Argument;
use crate::harness::answer::Head;
use crate::harness::client::request_with;

/// A request, and which differences its answers may have.
pub(super) struct Case {
    pub(super) method: &'static str,
    pub(super) target: &'static str,
    /// Field lines, with place holders: `TAG` and `DATE` for what the server at hand says of the file.
    pub(super) fields: Vec<String>,
    pub(super) arguments: &'static [Argument],
}

/// What a server says of a file.
pub(super) struct Known {
    tag: String,
    date: String,
}

impl Known {
    pub(super) fn of(head: &Head) -> Self {
        let value = |name| head.field(name).unwrap_or_default().to_owned();
        Self { tag: value("etag"), date: value("last-modified") }
    }
}

impl Case {
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// The request for the whole of the same form of the file.
    pub(super) fn plain(&self) -> Vec<u8> {
        let coding = self.fields.iter().filter(|field| field.starts_with("Accept-Encoding"));
        request_with("GET", self.target, &coding.map(|field| format!("{field}\r\n")).collect::<String>())
    }

    pub(super) fn request(&self, known: &Known) -> Vec<u8> {
        let lines = self.fields.iter().map(|field| format!("{field}\r\n")).collect::<String>();
        let lines = lines.replace("TAG", &known.tag).replace("DATE", &known.date);
        request_with(self.method, self.target, &lines)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 80;
        let fields: String = self.fields.join(" | ").chars().take(SHOWN_MAX).collect();
        write!(out, "{} {} {fields}", self.method, self.target)
    }
}
