//! One request to a server, and the response without the values that are each server's own.

use std::net::SocketAddr;

use testkit::{Client, Error, Response};

use super::requests::ComparedRequest;
use super::servers::Sites;

/// Shown in place of a missing header.
const MISSING: &str = "–";
/// Shown in place of a value that is each server's own.
const OWN: &str = "its own";
const PRESENT: &str = "there";
/// A part of a file is shown up to this length, bytes.
const SHOWN_BYTES_MAX: usize = 40;

/// Sent after each response, to see whether the connection stays and both sides agree where the request ended.
const NEXT: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: compare.test\r\nConnection: close\r\n\r\n";

/// A response with what is around it.
#[derive(Debug)]
pub(super) struct Received {
    /// `None` for bytes without a status line, as in HTTP/0.9.
    pub(super) response: Option<Response>,
    /// Statuses of interim responses.
    interim: Vec<u16>,
    /// Status of the response to a next request, if the connection stayed.
    next: Option<u16>,
}

/// Sends a request and reads the response; `None` if the connection ends without one.
pub(super) fn exchange(request: &[u8], address: SocketAddr) -> Result<Option<Received>, Error> {
    let mut client = Client::connect(address)?;
    client.accept_http10();
    client.send(request)?;
    let method = if request.starts_with(b"HEAD ") { "HEAD" } else { "GET" };
    let mut received = Received { response: None, interim: Vec::new(), next: None };
    loop {
        match client.response_to(method) {
            Ok(response) if response.status() < 200 => received.interim.push(response.status()),
            Ok(response) => {
                received.response = Some(response);
                break;
            }
            Err(Error::Closed | Error::Reset) => return Ok(None),
            // The end of the connection came before that of a head.
            Err(Error::Truncated) => return Ok(Some(received)),
            Err(error) => return Err(error),
        }
    }
    // The head of the next response is enough. A server that closes may reset.
    received.next = match client.send(NEXT).and_then(|()| client.head("GET")) {
        Ok(head) => Some(head.status),
        Err(error @ (Error::TimedOut | Error::Malformed(_))) => return Err(error),
        Err(_) => None,
    };
    Ok(Some(received))
}

/// A response as it is compared: named aspects, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComparedResponse {
    pub(super) status: String,
    pub(super) aspects: Vec<(String, String)>,
}

/// A difference between two responses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) aspect: String,
    pub(super) ours: String,
    pub(super) theirs: String,
}

impl ComparedResponse {
    pub(super) fn new(received: Option<&Received>, request: &ComparedRequest, sites: &Sites) -> Self {
        let only = |status: &str| Self { status: status.to_owned(), aspects: Vec::new() };
        let Some(Received { response, interim, next }) = received else { return only("closed") };
        let Some(response) = response else { return only("HTTP/0.9") };
        let body = body(response, sites);
        let is_list = request.site == "list";
        let headers = response.head.headers().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let headers = headers.filter(|(name, _)| name != "connection");
        let mut aspects: Vec<(String, String)> = headers
            .map(|(name, value)| {
                let value = normal(&name, value, response, &body, is_list);
                (name, value)
            })
            .collect();
        let after = match next {
            None => "closes".to_owned(),
            Some(200) => "stays".to_owned(),
            Some(status) => format!("stays; the next request gets {status}"),
        };
        let version = response.head.text().split(' ').next().unwrap_or_default().to_owned();
        let connection = response.header("connection").unwrap_or(MISSING).to_owned();
        let others = [
            ("Connection", connection),
            ("the connection", after),
            ("the version", version),
            ("the content", body),
        ];
        aspects.extend(others.map(|(name, value)| (name.to_owned(), value)));
        if !interim.is_empty() {
            aspects.push(("before it".to_owned(), format!("{interim:?}")));
        }
        aspects.sort();
        Self { status: response.status().to_string(), aspects }
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
fn body(response: &Response, sites: &Sites) -> String {
    let part = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= SHOWN_BYTES_MAX && !text.contains('\0') => format!("{text:?}"),
        _ => format!("{} bytes ({:08x})", bytes.len(), fnv(bytes)),
    };
    if response.body.is_empty() {
        return "empty".to_owned();
    }
    match boundary(response) {
        Some(boundary) => parts(&response.body, boundary, part).unwrap_or("malformed parts".to_owned()),
        None => match sites.name_of(&response.body) {
            Some(name) => name.to_owned(),
            None if response.status() == 206 => part(&response.body),
            None => OWN.to_owned(),
        },
    }
}

fn boundary(response: &Response) -> Option<&str> {
    response.header("content-type")?.strip_prefix("multipart/byteranges; boundary=")
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
fn normal(name: &str, value: &str, response: &Response, body: &str, is_list: bool) -> String {
    let is_date = value.ends_with(" GMT") && value.len() == 29;
    let own = match name {
        "date" | "last-modified" if is_date => PRESENT,
        "server" | "content-security-policy" => PRESENT,
        "etag" if value.starts_with("W/\"") => "weak",
        "etag" if value.starts_with('"') => "strong",
        "content-length" | "transfer-encoding" if body == OWN || boundary(response).is_some() => PRESENT,
        // Without its content, an error's length is each server's own.
        "content-length" if body == "empty" && (is_list || response.status() >= 300) && value != "0" => {
            PRESENT
        }
        "content-type" if boundary(response).is_some() => "multipart/byteranges",
        _ => value,
    };
    own.to_owned()
}

#[cfg(test)]
mod tests {
    use testkit::{Head, Response};

    use super::{ComparedResponse, Difference, Received, parts};
    use crate::compare::requests::all;
    use crate::compare::servers::Sites;

    fn outcome(status: u16, headers: &str, body: &str) -> ComparedResponse {
        let head = Head::parse(format!("HTTP/1.1 {status} x\r\n{headers}\r\n").as_bytes()).unwrap();
        let response = Some(Response { head, body: body.as_bytes().to_vec() });
        let received = Received { response, interim: Vec::new(), next: Some(200) };
        ComparedResponse::new(Some(&received), &all().unwrap()[0], &Sites::parse().unwrap())
    }

    #[test]
    fn values_of_the_servers_own_are_no_difference() {
        let ours = outcome(200, "ETag: \"1\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "a note\n");
        let same = outcome(200, "date: Mon, 07 Nov 1994 08:49:37 GMT\r\netag: \"2\"\r\n", "a note\n");
        assert_eq!(ours.differences(&same), []);
        let theirs = outcome(200, "ETag: W/\"1\"\r\n", "{}\n");
        let differences =
            [("date", "there", "–"), ("etag", "strong", "weak"), ("the content", "note.xyz", "data.json")];
        let differences = differences.map(|(aspect, ours, theirs)| {
            let [aspect, ours, theirs] = [aspect, ours, theirs].map(str::to_owned);
            Difference { aspect, ours, theirs }
        });
        assert_eq!(ours.differences(&theirs), differences);
        assert_ne!(ours.digest(), theirs.digest());
        let error = outcome(404, "Content-Length: 10\r\n", "Not Found\n");
        assert_eq!(error.differences(&outcome(404, "Content-Length: 4\r\n", "None")), []);
        assert_ne!(error.differences(&outcome(404, "Content-Length: 0\r\n", "")), []);
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
