//! Formats of lines.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use crate::entry::{AUTHORIZATION, Entry, user};
use crate::escape::{self, SPACED, UNSPACED};
use crate::limits::{
    CREDENTIALS_BYTES_MAX, LOG_FIELDS_MAX, LOG_FORMAT_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_VALUE_BYTES_MAX,
};
use crate::time::TimeCache;

/// Status in a line of text for a request without a response. Log analysers know the number from nginx.
const NO_RESPONSE: u16 = 499;

/// A format of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// The common log format of the W3C's httpd: `client - user [time] "request" status bytes`.
    Common,
    /// The common format, then the quoted fields `Referer` and `User-Agent`.
    Combined,
    /// A JSON object in each line.
    Json,
    /// A string with variables.
    Custom(Custom),
}

/// A parsed format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Custom {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(Variable),
    /// The value of a request field.
    Field(String),
}

impl Part {
    /// Returns the name of the request field.
    fn field(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            Self::Variable(Variable::RemoteUser) => Some(AUTHORIZATION),
            Self::Text(_) | Self::Variable(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    RemoteAddr,
    RemotePort,
    PeerAddr,
    PeerPort,
    RemoteUser,
    TimeLocal,
    TimeIso,
    Request,
    Method,
    Target,
    Path,
    Query,
    Protocol,
    Scheme,
    TlsVersion,
    Status,
    BodyBytesReceived,
    BodyBytesSent,
    BytesSent,
    RequestTime,
    FirstByteTime,
    End,
}

/// A format string's variables by name, with their meaning, besides `$http_NAME`.
const VARIABLES: [(&str, &str, Variable); 22] = [
    ("remote_addr", "the client's address, also behind trusted proxies", Variable::RemoteAddr),
    ("remote_port", "the client's port; `-` if its proxy doesn't name it", Variable::RemotePort),
    (
        "realip_remote_addr",
        "the address at the other end of the connection: the client's or its proxy's",
        Variable::PeerAddr,
    ),
    ("realip_remote_port", "the port there", Variable::PeerPort),
    (
        "remote_user",
        "the user name of basic authentication as sent; `-` without one, and with status 401",
        Variable::RemoteUser,
    ),
    ("time_local", "the time of the end in UTC: `23/Nov/2026:21:25:00 +0000`", Variable::TimeLocal),
    ("time_iso8601", "the same: `2026-11-23T21:25:00Z`", Variable::TimeIso),
    ("request", "the request line: method, target and version", Variable::Request),
    ("request_method", "the method", Variable::Method),
    ("request_uri", "the target as received: path and query", Variable::Target),
    ("uri", "the target's path as received", Variable::Path),
    ("args", "the target's query", Variable::Query),
    ("server_protocol", "the version: `HTTP/1.1`", Variable::Protocol),
    ("scheme", "`https` on a connection by TLS, else `http`", Variable::Scheme),
    ("ssl_protocol", "the version of TLS: `TLSv1.3`; `-` without TLS", Variable::TlsVersion),
    ("status", "the status; 499 without a response", Variable::Status),
    ("body_bytes_received", "bytes of the request's body", Variable::BodyBytesReceived),
    ("body_bytes_sent", "bytes of the response's body that were sent", Variable::BodyBytesSent),
    ("bytes_sent", "bytes of the response that were sent", Variable::BytesSent),
    ("request_time", "seconds from the first byte of the request to the end: `0.042`", Variable::RequestTime),
    (
        "first_byte_time",
        "seconds to the first byte of the response; `-` without one",
        Variable::FirstByteTime,
    ),
    (
        "end",
        "`complete`, or why not: `disconnected`, `timed_out`, `truncated`, `evicted`, `aborted`, `unknown`",
        Variable::End,
    ),
];

/// Returns the names of a format string's variables with their meaning, besides `$http_NAME`.
pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    VARIABLES.into_iter().map(|(name, meaning, _)| (name, meaning))
}

/// The reason why a format string is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError(String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}

impl Format {
    /// Parses the name of a format, or a format string: text with variables such as `$status` or `${status}`.
    ///
    /// # Errors
    /// If it has neither a name nor a variable, an unknown variable, a control character, or too many fields or bytes.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        match text {
            "common" => Ok(Self::Common),
            "combined" => Ok(Self::Combined),
            "json" => Ok(Self::Json),
            _ if text.len() > LOG_FORMAT_BYTES_MAX => {
                Err(FormatError(format!("format is longer than {LOG_FORMAT_BYTES_MAX} bytes")))
            }
            _ if text.contains(char::is_control) => {
                Err(FormatError("format has a control character: each request is one line".to_owned()))
            }
            _ if !text.contains('$') => {
                Err(FormatError("unknown format, and no format string: it has no variable".to_owned()))
            }
            _ => Ok(Self::Custom(Custom { parts: parse(text)? })),
        }
    }

    /// Returns the names of the request fields that it uses, in lower case.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        match self {
            Self::Common => vec![AUTHORIZATION],
            Self::Combined => vec!["referer", "user-agent", AUTHORIZATION],
            Self::Json => vec!["host", "referer", "user-agent"],
            Self::Custom(custom) => custom.parts.iter().filter_map(Part::field).collect(),
        }
    }

    /// Appends an entry's line with its line end. `time` caches the date.
    pub fn append(&self, out: &mut Vec<u8>, entry: &Entry<'_>, time: &mut TimeCache) {
        self.append_bounded(out, entry, time, LOG_LINE_BYTES_MAX);
    }

    /// Appends a line of at most `line_max` bytes.
    #[inline]
    pub(crate) fn append_bounded(
        &self,
        out: &mut Vec<u8>,
        entry: &Entry<'_>,
        time: &mut TimeCache,
        line_max: usize,
    ) {
        let line = out.len()..out.len() + line_max;
        self.append_cut(out, entry, time, LOG_VALUE_BYTES_MAX, line.end);
        if out.len() > line.end {
            self.shorten(out, entry, time, line);
        }
        out.push(b'\n');
    }

    /// Replaces a line that is longer than its place: its values are cut to half of the length until it fits.
    #[cold]
    fn shorten(&self, out: &mut Vec<u8>, entry: &Entry<'_>, time: &mut TimeCache, line: Range<usize>) {
        let mut max = LOG_VALUE_BYTES_MAX;
        while out.len() > line.end && max > 0 {
            max /= 2;
            out.truncate(line.start);
            self.append_cut(out, entry, time, max, line.end);
        }
        if out.len() > line.end {
            out.truncate(line.end - escape::CUT.len());
            out.extend_from_slice(escape::CUT);
        }
    }

    /// Appends a line without its end, with at most `max` bytes of each value; ceases soon after `end`.
    fn append_cut(&self, out: &mut Vec<u8>, entry: &Entry<'_>, time: &mut TimeCache, max: usize, end: usize) {
        match self {
            Self::Common => common(out, entry, time, max),
            Self::Combined => {
                common(out, entry, time, max);
                out.extend_from_slice(b" \"");
                escape::text::<SPACED>(out, (entry.field)("referer"), max);
                out.extend_from_slice(b"\" \"");
                escape::text::<SPACED>(out, (entry.field)("user-agent"), max);
                out.push(b'"');
            }
            Self::Json => json(out, entry, time, max),
            Self::Custom(custom) => {
                for part in &custom.parts {
                    match part {
                        Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                        Part::Variable(variable) => append_variable(*variable, out, entry, time, max),
                        Part::Field(name) => escape::text::<SPACED>(out, (entry.field)(name), max),
                    }
                    if out.len() > end {
                        return;
                    }
                }
            }
        }
    }
}

fn parse(text: &str) -> Result<Vec<Part>, FormatError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            parts.push(Part::Text(rest[..at].to_owned()));
        }
        rest = &rest[at + 1..];
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = match rest.strip_prefix('{') {
            Some(braced) => {
                let end = braced.find('}').ok_or_else(|| FormatError("missing `}` after `${`".to_owned()))?;
                rest = &braced[end + 1..];
                &braced[..end]
            }
            None => {
                let end = rest.find(|letter: char| !is_name(letter)).unwrap_or(rest.len());
                let name = &rest[..end];
                rest = &rest[end..];
                name
            }
        };
        parts.push(variable(name)?);
    }
    let fields: BTreeSet<&str> = parts.iter().filter_map(Part::field).collect();
    if fields.len() > LOG_FIELDS_MAX {
        return Err(FormatError(format!("format has more than {LOG_FIELDS_MAX} different `$http_` fields")));
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}

fn variable(name: &str) -> Result<Part, FormatError> {
    if let Some((.., variable)) = VARIABLES.iter().find(|(known, ..)| *known == name) {
        return Ok(Part::Variable(*variable));
    }
    match name.strip_prefix("http_").filter(|field| !field.is_empty()) {
        Some(field) => Ok(Part::Field(field.to_ascii_lowercase().replace('_', "-"))),
        None => Err(FormatError(format!("unknown variable `${name}`"))),
    }
}

/// Appends the user name of credentials. Out of line: most requests have none, and need no room to decode it.
#[cold]
fn append_user(out: &mut Vec<u8>, credentials: &[u8], max: usize) {
    escape::text::<UNSPACED>(out, user(credentials, &mut [0; CREDENTIALS_BYTES_MAX]), max);
}

fn common(out: &mut Vec<u8>, entry: &Entry<'_>, time: &mut TimeCache, max: usize) {
    append_variable(Variable::RemoteAddr, out, entry, time, max);
    out.extend_from_slice(b" - ");
    append_variable(Variable::RemoteUser, out, entry, time, max);
    out.extend_from_slice(b" [");
    out.extend_from_slice(time.local(entry.unix_seconds));
    out.extend_from_slice(b"] \"");
    append_variable(Variable::Request, out, entry, time, max);
    out.extend_from_slice(b"\" ");
    append_variable(Variable::Status, out, entry, time, max);
    out.push(b' ');
    escape::number(out, entry.body_bytes_sent);
}

fn append_variable(
    variable: Variable,
    out: &mut Vec<u8>,
    entry: &Entry<'_>,
    time: &mut TimeCache,
    max: usize,
) {
    match variable {
        Variable::RemoteAddr => append_address(out, entry.client.map(|client| client.ip())),
        Variable::RemotePort => append_port(out, entry.client),
        Variable::PeerAddr => append_address(out, entry.peer.map(|peer| peer.ip())),
        Variable::PeerPort => append_port(out, entry.peer),
        Variable::RemoteUser => match entry.credentials() {
            Some(credentials) => append_user(out, credentials, max),
            None => out.push(b'-'),
        },
        Variable::TimeLocal => out.extend_from_slice(time.local(entry.unix_seconds)),
        Variable::TimeIso => out.extend_from_slice(time.iso(entry.unix_seconds)),
        Variable::Request => append_request_line(out, entry, max),
        Variable::Method => escape::text::<UNSPACED>(out, Some(entry.method), max),
        Variable::Target => escape::text::<UNSPACED>(out, Some(entry.target), max),
        Variable::Path => escape::text::<UNSPACED>(out, Some(entry.path()), max),
        Variable::Query => escape::text::<UNSPACED>(out, entry.query(), max),
        Variable::Protocol => escape::text::<UNSPACED>(out, Some(entry.version.as_bytes()), max),
        Variable::Scheme => out.extend_from_slice(entry.scheme().as_bytes()),
        Variable::TlsVersion => out.extend_from_slice(entry.tls_version.unwrap_or("-").as_bytes()),
        Variable::Status => escape::number(out, entry.status.unwrap_or(NO_RESPONSE).into()),
        Variable::BodyBytesReceived => escape::number(out, entry.body_bytes_received),
        Variable::BodyBytesSent => escape::number(out, entry.body_bytes_sent),
        Variable::BytesSent => escape::number(out, entry.bytes_sent),
        Variable::RequestTime => escape::thousandths(out, millis(entry.duration)),
        Variable::FirstByteTime => match entry.first_byte {
            Some(time) => escape::thousandths(out, millis(time)),
            None => out.push(b'-'),
        },
        Variable::End => out.extend_from_slice(entry.end.as_bytes()),
    }
}

/// Appends method, target and version, as far as they are known: at most three words.
fn append_request_line(out: &mut Vec<u8>, entry: &Entry<'_>, max: usize) {
    if entry.method.is_empty() && entry.target.is_empty() {
        return out.push(b'-');
    }
    escape::raw::<UNSPACED>(out, entry.method, max);
    let (target, version) = match entry.version {
        "" => split_version(entry.target),
        known => (entry.target, known.as_bytes()),
    };
    for rest in [target, version].into_iter().filter(|rest| !rest.is_empty()) {
        out.push(b' ');
        escape::raw::<UNSPACED>(out, rest, max);
    }
}

/// Splits an unknown version, such as `HTTP/2.0`, from the target that it was kept with.
#[cold]
fn split_version(target: &[u8]) -> (&[u8], &[u8]) {
    let space = target.iter().rposition(|byte| *byte == b' ');
    let (before, last) = space.map_or((target, &[][..]), |at| (&target[..at], &target[at + 1..]));
    match last {
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => (before, last),
        _ => (target, &[]),
    }
}

fn append_port(out: &mut Vec<u8>, address: Option<SocketAddr>) {
    match address.map(|address| address.port()) {
        None | Some(0) => out.push(b'-'),
        Some(port) => escape::number(out, port.into()),
    }
}

/// Appends an address; one of IPv4 in its own form, also if a socket of IPv6 accepted it.
fn append_address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    use std::io::Write;
    match address.map(|address| address.to_canonical()) {
        None => out.push(b'-'),
        Some(IpAddr::V4(address)) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                escape::number(out, octet.into());
            }
        }
        // Writing to a vector can't fail.
        Some(IpAddr::V6(address)) => drop(write!(out, "{address}")),
    }
}

fn json(out: &mut Vec<u8>, entry: &Entry<'_>, time: &mut TimeCache, max: usize) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(time.iso(entry.unix_seconds));
    out.push(b'"');
    append_json_address(out, [&b",\"client\":"[..], b",\"port\":"], entry.client);
    append_json_address(out, [&b",\"peer\":"[..], b",\"peer_port\":"], entry.peer);
    let texts = [
        (&b",\"method\":"[..], Some(entry.method).filter(|text| !text.is_empty())),
        (b",\"target\":", Some(entry.target).filter(|text| !text.is_empty())),
        (b",\"version\":", Some(entry.version.as_bytes()).filter(|text| !text.is_empty())),
        (b",\"host\":", (entry.field)("host")),
        (b",\"referer\":", (entry.field)("referer")),
        (b",\"user_agent\":", (entry.field)("user-agent")),
    ];
    let mut cut = Vec::new();
    for (name, value) in texts {
        out.extend_from_slice(name);
        if escape::json(out, value, max) {
            cut.push(name);
        }
    }
    out.extend_from_slice(b",\"scheme\":\"");
    out.extend_from_slice(entry.scheme().as_bytes());
    out.extend_from_slice(b"\",\"tls\":");
    match entry.tls_version {
        Some(version) => {
            out.push(b'"');
            out.extend_from_slice(version.as_bytes());
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"status\":");
    match entry.status {
        Some(status) => escape::number(out, status.into()),
        None => out.extend_from_slice(b"null"),
    }
    for (name, number) in [
        (&b",\"body_received\":"[..], entry.body_bytes_received),
        (b",\"body_sent\":", entry.body_bytes_sent),
        (b",\"sent\":", entry.bytes_sent),
    ] {
        out.extend_from_slice(name);
        escape::number(out, number);
    }
    out.extend_from_slice(b",\"first_byte_ms\":");
    match entry.first_byte {
        Some(time) => escape::thousandths(out, micros(time)),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"duration_ms\":");
    escape::thousandths(out, micros(entry.duration));
    out.extend_from_slice(b",\"end\":\"");
    out.extend_from_slice(entry.end.as_bytes());
    out.push(b'"');
    if !cut.is_empty() {
        append_cut_names(out, &cut);
    }
    out.push(b'}');
}

/// Appends a member with the names of those whose values were cut. Each has a comma before and a colon after it.
#[cold]
fn append_cut_names(out: &mut Vec<u8>, cut: &[&[u8]]) {
    out.extend_from_slice(b",\"cut\":");
    let start = out.len();
    cut.iter().for_each(|name| out.extend_from_slice(&name[..name.len() - 1]));
    out[start] = b'[';
    out.push(b']');
}

/// Appends an address and its port, each after its name.
fn append_json_address(out: &mut Vec<u8>, names: [&[u8]; 2], address: Option<SocketAddr>) {
    out.extend_from_slice(names[0]);
    match address {
        Some(address) => {
            out.push(b'"');
            append_address(out, Some(address.ip()));
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(names[1]);
    match address.map(|address| address.port()) {
        None | Some(0) => out.extend_from_slice(b"null"),
        Some(port) => escape::number(out, port.into()),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
