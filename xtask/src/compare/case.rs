//! One request, as it is sent to every server.

use super::exchange::Answer;
use super::sites::Site;

/// The most characters of a request that are shown.
const SHOWN_CHARS_MAX: usize = 110;

/// A request for a site.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) site: Site,
    /// Its bytes, with place holders: `TAG` and `DATE` for what the server at hand says of the file.
    bytes: String,
    /// What the place holders are filled from.
    of_file: Option<String>,
    /// How it is shown, and named in arguments.
    pub(super) name: String,
}

impl Case {
    /// A request of HTTP/1.1 with a `Host`. `fields` are separated by `|`.
    pub(super) fn usual(site: Site, method: &str, target: &str, fields: &str) -> Self {
        let lines: Vec<&str> = fields.split('|').map(str::trim).filter(|field| !field.is_empty()).collect();
        let text = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        let codings = lines.iter().filter(|line| line.starts_with("Accept-Encoding"));
        let codings = codings.map(|line| format!("{line}\r\n")).collect::<String>();
        let of_file = fields.contains("TAG") || fields.contains("DATE");
        let shown = if lines.is_empty() { String::new() } else { format!(" · {}", lines.join(" · ")) };
        Self {
            site,
            bytes: format!("{method} {target} HTTP/1.1\r\nHost: compare.test\r\n{text}\r\n"),
            of_file: of_file.then(|| format!("GET {target} HTTP/1.1\r\nHost: compare.test\r\n{codings}\r\n")),
            name: cut(&format!("{method} {target}{shown}")),
        }
    }

    /// With the body that its fields tell of: three bytes, or no chunk.
    pub(super) fn with_body(mut self) -> Self {
        if self.bytes.contains("Content-Length: ") {
            self.bytes.push_str("abc");
        } else if self.bytes.contains("Transfer-Encoding: ") {
            self.bytes.push_str("0\r\n\r\n");
        }
        self
    }

    /// Bytes as they are, named so.
    pub(super) fn raw(site: Site, bytes: &str) -> Self {
        let lines: Vec<&str> = bytes.split("\r\n").filter(|line| !line.is_empty()).collect();
        Self {
            site,
            bytes: bytes.to_owned(),
            of_file: None,
            name: cut(&format!("raw · {}", lines.join(" · "))),
        }
    }

    /// The request that the place holders are filled from, where there are any.
    pub(super) fn before(&self) -> Option<&[u8]> {
        self.of_file.as_deref().map(str::as_bytes)
    }

    /// What is sent to a server that has answered so to the request before.
    pub(super) fn request(&self, known: Option<&Answer>) -> Vec<u8> {
        let value = |name| known.and_then(|answer| answer.field(name)).unwrap_or("none");
        let (tag, date) = (value("etag"), value("last-modified"));
        self.bytes.replace("TAG", tag).replace("DATE", date).into_bytes()
    }
}

/// Long requests are shown by their beginning.
fn cut(name: &str) -> String {
    let name = name.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r").replace('\0', "\\0");
    if name.chars().count() <= SHOWN_CHARS_MAX {
        return name;
    }
    name.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{Case, SHOWN_CHARS_MAX};
    use crate::compare::exchange::{After, Answer};
    use crate::compare::sites::Site;

    #[test]
    fn place_holders_are_filled() {
        let case = Case::usual(Site::Plain, "GET", "/a", "If-None-Match: TAG | Accept-Encoding: gzip");
        assert_eq!(case.name, "GET /a · If-None-Match: TAG · Accept-Encoding: gzip");
        let before = case.before().expect("it asks for the tag");
        assert_eq!(before, b"GET /a HTTP/1.1\r\nHost: compare.test\r\nAccept-Encoding: gzip\r\n\r\n");
        let known = Answer {
            version: None,
            status: 200,
            fields: vec![("etag".to_owned(), "\"1\"".to_owned())],
            body: Vec::new(),
            interim: Vec::new(),
            after: After::Closes,
        };
        assert!(String::from_utf8_lossy(&case.request(Some(&known))).contains("If-None-Match: \"1\"\r\n"));
    }

    #[test]
    fn names_are_of_one_line() {
        let long = "x".repeat(SHOWN_CHARS_MAX);
        assert_eq!(Case::usual(Site::List, &long[2..], "/", "").name, format!("{} /", &long[2..]));
        assert_eq!(Case::raw(Site::List, "GET /a\nb\r\nHost: x\r\n\r\n").name, "raw · GET /a\\nb · Host: x");
        assert_eq!(Case::usual(Site::List, &long, "/", "").name, format!("{long}…"));
    }
}
