//! The requests of `requests.txt`.

use anyhow::{Context as _, Result, bail};
use testkit::Response;

use super::servers;

const REQUESTS: &str = include_str!("../../data/compare/requests.txt");
/// Characters of a request's name.
const NAME_CHARS_MAX: usize = 110;
/// Letters of LONG, more than any server takes.
const LONG: usize = 100_000;
const MANY: usize = 200;

/// A request for a site.
#[derive(Debug, Clone)]
pub(super) struct ComparedRequest {
    pub(super) site: String,
    /// Bytes with the placeholders TAG and DATE.
    text: String,
    /// The request whose response fills the placeholders.
    first: Option<String>,
    /// Name on the page and in causes.
    pub(super) name: String,
}

impl ComparedRequest {
    /// The request to send first, if this one has placeholders.
    pub(super) fn first(&self) -> Option<Vec<u8>> {
        self.first.as_ref().map(|text| text.clone().into_bytes())
    }

    /// The bytes to send, given the response to the first request.
    pub(super) fn bytes(&self, first: Option<&Response>) -> Vec<u8> {
        let value = |name| first.and_then(|response| response.header(name)).unwrap_or("none");
        self.text.replace("TAG", value("etag")).replace("DATE", value("last-modified")).into_bytes()
    }

    fn parse(line: &str) -> Result<Self> {
        let (site, rest) = line.split_once(' ').context("no site")?;
        let rest = placeholders(&unescape(rest), rest);
        if site == "raw" {
            let lines: Vec<&str> = rest.split("\r\n").filter(|line| !line.is_empty()).collect();
            let name = shortened(&format!("raw · {}", lines.join(" · ")));
            return Ok(Self { site: "plain".to_owned(), text: rest, first: None, name });
        }
        let mut parts = rest.split(" | ");
        let line = parts.next().unwrap_or_default();
        let fields: Vec<&str> = parts.collect();
        let Some((method, target)) = line.split_once(' ') else { bail!("no target") };
        let lines = |fields: &[&str]| fields.iter().map(|field| format!("{field}\r\n")).collect::<String>();
        let mut text = format!("{line} HTTP/1.1\r\nHost: compare.test\r\n{}\r\n", lines(&fields));
        text = text.replace("RANGES-64", &ranges(64)).replace("RANGES-65", &ranges(65));
        // The body that the fields announce: three bytes, or no chunk.
        if text.contains("Content-Length: ") {
            text.push_str("abc");
        } else if text.contains("Transfer-Encoding: ") {
            text.push_str("0\r\n\r\n");
        }
        let has_placeholder = fields.iter().any(|field| field.contains("TAG") || field.contains("DATE"));
        let codings: Vec<&str> =
            fields.iter().copied().filter(|field| field.starts_with("Accept-Encoding")).collect();
        let first = format!("GET {target} HTTP/1.1\r\nHost: compare.test\r\n{}\r\n", lines(&codings));
        let shown: String = fields.iter().map(|field| format!(" · {field}")).collect();
        Ok(Self {
            site: site.to_owned(),
            text,
            first: has_placeholder.then_some(first),
            name: shortened(&format!("{method} {target}{shown}")),
        })
    }
}

/// Parses all requests.
pub(super) fn all() -> Result<Vec<ComparedRequest>> {
    let lines = REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| ComparedRequest::parse(line).with_context(|| format!("requests.txt: {line:?}")))
        .collect()
}

fn unescape(text: &str) -> String {
    let escapes = [("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\0", "\0"), ("\\\\", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escape, byte)| text.replace(escape, byte))
}

/// A list of ranges of one byte.
fn ranges(count: usize) -> String {
    (0..count).map(|number| format!("{0}-{0}", number * 2)).collect::<Vec<_>>().join(",")
}

/// Fills the placeholders that don't depend on the server.
fn placeholders(text: &str, line: &str) -> String {
    let len = servers::generated_len(line);
    let many = (0..MANY).map(|number| format!("X{number}: y")).collect::<Vec<_>>().join(" | ");
    let text = text.replace("LONG", &"a".repeat(LONG)).replace("MANY", &many);
    match len {
        Some(len) => text.replace("LEN", &len.to_string()).replace("LAST", &(len - 1).to_string()),
        None => text,
    }
}

/// Shows a long name by its beginning, control characters as escapes.
fn shortened(name: &str) -> String {
    let name = name.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r").replace('\0', "\\0");
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ComparedRequest, all};

    #[test]
    fn every_request_has_a_name_of_its_own() {
        let requests = all().unwrap();
        let names: BTreeSet<_> = requests.iter().map(|request| (&request.site, &request.name)).collect();
        assert!(
            requests.len() > 300 && names.len() == requests.len(),
            "{} of {}",
            names.len(),
            requests.len()
        );
    }

    #[test]
    fn lines_become_requests() {
        let request =
            ComparedRequest::parse("plain GET /a | If-None-Match: TAG | Accept-Encoding: gzip").unwrap();
        assert_eq!(request.name, "GET /a · If-None-Match: TAG · Accept-Encoding: gzip");
        let first = b"GET /a HTTP/1.1\r\nHost: compare.test\r\nAccept-Encoding: gzip\r\n\r\n";
        assert_eq!(request.first().as_deref(), Some(first.as_slice()));
        let request = ComparedRequest::parse("raw GET /a\\nb\\r\\nHost: x\\r\\n\\r\\n").unwrap();
        assert_eq!(request.name, "raw · GET /a\\nb · Host: x");
        assert_eq!(request.bytes(None), b"GET /a\nb\r\nHost: x\r\n\r\n");
        assert!(ComparedRequest::parse("plain").is_err());
    }
}
