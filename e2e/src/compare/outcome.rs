//! A response without the values that are each server's own.

use super::exchange::Received;
use super::requests::Request;
use super::servers::Sites;

/// Shown in place of a missing header.
const MISSING: &str = "–";
/// Shown in place of a value that is each server's own.
const OWN: &str = "its own";
const PRESENT: &str = "there";
/// A part of a file is shown up to this length, bytes.
const SHOWN_BYTES_MAX: usize = 40;

/// A response as it is compared: named aspects, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: String,
    aspects: Vec<(String, String)>,
}

/// A difference between two responses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) aspect: String,
    pub(super) ours: String,
    pub(super) theirs: String,
}

impl Outcome {
    pub(super) fn new(received: Option<&Received>, request: &Request, sites: &Sites) -> Self {
        let only = |status: &str| Self { status: status.to_owned(), aspects: Vec::new() };
        let Some(received) = received else { return only("closed") };
        if received.version.is_empty() {
            return only("HTTP/0.9");
        }
        let body = body(received, sites);
        let is_list = request.site == "list";
        let headers = received.headers.iter().filter(|(name, _)| name != "connection");
        let mut aspects: Vec<(String, String)> = headers
            .map(|(name, value)| (name.clone(), normal(name, value, received, &body, is_list)))
            .collect();
        let mut add = |name: &str, value: String| aspects.push((name.to_owned(), value));
        if let Some(length) = received.header("content-length")
            && !received.body.is_empty()
            && length.parse() != Ok(received.body.len())
        {
            add("length of the content", received.body.len().to_string());
        }
        add("Connection", received.header("connection").unwrap_or(MISSING).to_owned());
        let after = match received.next {
            None => "closes".to_owned(),
            Some(200) => "stays".to_owned(),
            Some(status) => format!("stays; the next request gets {status}"),
        };
        add("the connection", after);
        add("the version", received.version.clone());
        add("the content", body);
        if !received.interim.is_empty() {
            add("before it", format!("{:?}", received.interim));
        }
        aspects.sort();
        Self { status: received.status.to_string(), aspects }
    }

    /// A short number that changes with every aspect.
    pub(super) fn digest(&self) -> u32 {
        fnv(self.shown().as_bytes())
    }

    /// All of it on one line.
    pub(super) fn shown(&self) -> String {
        let aspects = self.aspects.iter().map(|(name, value)| format!("; {name}: {value}"));
        format!("{}{}", self.status, aspects.collect::<String>())
    }

    /// Returns the differences. Where the status differs, the rest follows from it and isn't compared.
    pub(super) fn differences(&self, other: &Self) -> Vec<Difference> {
        let difference = |aspect: &str, ours: &str, theirs: &str| {
            let [aspect, ours, theirs] = [aspect, ours, theirs].map(str::to_owned);
            Difference { aspect, ours, theirs }
        };
        if self.status != other.status {
            return vec![difference("status", &self.status, &other.status)];
        }
        let mut names: Vec<&str> =
            self.aspects.iter().chain(&other.aspects).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let values = names.into_iter().map(|name| (name, self.value(name), other.value(name)));
        let differing = values.filter(|(_, ours, theirs)| ours != theirs);
        differing.map(|(name, ours, theirs)| difference(name, &ours, &theirs)).collect()
    }

    /// The values of an aspect; those of a repeated header side by side.
    fn value(&self, name: &str) -> String {
        let values = self.aspects.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let values: Vec<&str> = values.collect();
        if values.is_empty() { MISSING.to_owned() } else { values.join(" | ") }
    }
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The content: a file by its name, a part by its bytes, or text of the server's own.
fn body(received: &Received, sites: &Sites) -> String {
    let part = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= SHOWN_BYTES_MAX && !text.contains('\0') => format!("{text:?}"),
        _ => format!("{} bytes ({:08x})", bytes.len(), fnv(bytes)),
    };
    if received.body.is_empty() {
        return "empty".to_owned();
    }
    match boundary(received) {
        Some(boundary) => parts(&received.body, boundary, part).unwrap_or("malformed parts".to_owned()),
        None => match sites.name_of(&received.body) {
            Some(name) => name.to_owned(),
            None if received.status == 206 => part(&received.body),
            None => OWN.to_owned(),
        },
    }
}

fn boundary(received: &Received) -> Option<&str> {
    received.header("content-type")?.strip_prefix("multipart/byteranges; boundary=")
}

/// The parts of a multipart body (RFC 2046 section 5.1): headers and bytes of each.
fn parts(body: &[u8], boundary: &str, shown: impl Fn(&[u8]) -> String) -> Option<String> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter may be at the very start.
    let body = [b"\r\n", body].concat();
    let starts: Vec<usize> = (0..body.len()).filter(|&at| body[at..].starts_with(&delimiter)).collect();
    let part = |pair: &[usize]| {
        let part = &body[pair[0] + delimiter.len()..pair[1]];
        let end = part.windows(4).position(|window| window == b"\r\n\r\n")?;
        let headers = String::from_utf8_lossy(&part[..end]).to_ascii_lowercase();
        let mut headers: Vec<&str> = headers.trim().lines().collect();
        headers.sort_unstable();
        Some(format!("[{}] {}", headers.join("; "), shown(&part[end + 4..])))
    };
    let all = starts.windows(2).map(part).collect::<Option<Vec<_>>>()?;
    let is_closed = body[starts.last()? + delimiter.len()..] == *b"--\r\n";
    is_closed.then(|| all.join(", "))
}

/// A header's value, without what must differ.
fn normal(name: &str, value: &str, received: &Received, body: &str, is_list: bool) -> String {
    let is_date = value.ends_with(" GMT") && value.len() == 29;
    let own = match name {
        "date" | "last-modified" if is_date => PRESENT,
        "server" | "content-security-policy" => PRESENT,
        "etag" if value.starts_with("W/\"") => "weak",
        "etag" if value.starts_with('"') => "strong",
        "content-length" | "transfer-encoding" if body == OWN || boundary(received).is_some() => PRESENT,
        // Without its content, an error's length is each server's own.
        "content-length" if body == "empty" && (is_list || received.status >= 300) && value != "0" => PRESENT,
        "content-type" if boundary(received).is_some() => "multipart/byteranges",
        _ => value,
    };
    own.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Difference, Outcome, parts};
    use crate::compare::exchange::Received;
    use crate::compare::requests::all;
    use crate::compare::servers::Sites;

    fn outcome(status: u16, headers: &[(&str, &str)], body: &str) -> Outcome {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (version, body) = ("HTTP/1.1".to_owned(), body.as_bytes().to_vec());
        let received = Received { version, status, headers, body, next: Some(200), ..Received::default() };
        Outcome::new(Some(&received), &all().unwrap()[0], &Sites::parse().unwrap())
    }

    #[test]
    fn values_of_the_servers_own_are_no_difference() {
        let ours = outcome(200, &[("etag", "\"1\""), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")], "a note\n");
        let same = outcome(200, &[("date", "Mon, 07 Nov 1994 08:49:37 GMT"), ("etag", "\"2\"")], "a note\n");
        assert_eq!(ours.differences(&same), []);
        let theirs = outcome(200, &[("etag", "W/\"1\"")], "{}\n");
        let differences =
            [("date", "there", "–"), ("etag", "strong", "weak"), ("the content", "note.xyz", "data.json")];
        let differences = differences.map(|(aspect, ours, theirs)| {
            let [aspect, ours, theirs] = [aspect, ours, theirs].map(str::to_owned);
            Difference { aspect, ours, theirs }
        });
        assert_eq!(ours.differences(&theirs), differences);
        assert_ne!(ours.digest(), theirs.digest());
        let error = outcome(404, &[("content-length", "10")], "Not Found\n");
        assert_eq!(error.differences(&outcome(404, &[("content-length", "4")], "None")), []);
        assert_ne!(error.differences(&outcome(404, &[("content-length", "0")], "")), []);
    }

    #[test]
    fn parts_are_the_same_in_both_ways_to_write_them() {
        let ours =
            b"--b\r\nContent-Type: x\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--b\r\nContent-Type: x\r\n\
                     Content-Range: bytes 4-4/9\r\n\r\ne\r\n--b--\r\n";
        let shown = |bytes: &[u8]| format!("{} bytes", bytes.len());
        let all = parts(ours, "b", shown).unwrap();
        assert!(all.starts_with("[content-range: bytes 0-1/9; content-type: x] 2 bytes, ["), "{all}");
        assert_eq!(parts(&[b"\r\n", &ours[..]].concat(), "b", shown), Some(all));
        assert_eq!(parts(&ours[..ours.len() - 4], "b", shown), None);
    }
}
