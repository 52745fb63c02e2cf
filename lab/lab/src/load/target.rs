//! The URL of a load, and the values of its options.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;

use crate::client::Stage;

/// An `http` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) url: String,
    /// Host and port as written, for the header `Host`.
    pub(super) authority: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query.
    pub(super) path: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("expected `http://` first\nhelp: http://{text}"));
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(format!(
                "the scheme `{scheme}` is not supported, only `http` is\nhelp: http://{rest}"
            ));
        }
        let help = "help: encode other characters than letters, digits and -._~!$&'()*+,;=:@/? as %XX";
        let uri: Uri = text.parse().map_err(|error| format!("{error}\n{help}"))?;
        let authority = uri.authority().map(|it| it.as_str().to_owned()).unwrap_or_default();
        if authority.contains('@') {
            return Err("user and password are not sent\nhelp: -H 'Authorization: Basic …'".to_owned());
        }
        let host = uri.host().unwrap_or_default();
        let port = match authority.strip_prefix(host) {
            Some("") => 80,
            Some(rest) => rest[1..].parse().map_err(|_| format!("`{}` is no port", &rest[1..]))?,
            None => return Err("no host".to_owned()),
        };
        if host.is_empty() || port == 0 {
            return Err("expected a host and a port from 1 to 65535".to_owned());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self { url: text.to_owned(), authority, host, port, path })
    }
}

impl Target {
    /// Returns all addresses of the host.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        Ok(found.map_err(|error| format!("host `{}`: {error}", self.host))?.collect())
    }
}

/// Parses `MIN-MAX` or one length.
pub(super) fn parse_lengths(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let lengths = least.parse().ok().zip(most.parse().ok()).filter(|(least, most)| least <= most);
    lengths
        .map(|(least, most)| least..=most)
        .ok_or_else(|| format!("expected MIN-MAX in bytes, found `{text}`"))
}

/// Parses a duration with its unit; a number alone is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let unit_s =
        [("ms", 0.001), ("", 1.0), ("s", 1.0), ("m", 60.0)].into_iter().find(|it| it.0 == &text[at..]);
    let seconds = text[..at].parse().ok().zip(unit_s).map(|(number, (_, unit_s)): (f64, _)| number * unit_s);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("expected a duration such as 10s, 500ms or 2m, found `{text}`"))
}

/// Parses `CONNECTIONS[:DURATION]`.
pub(super) fn parse_stage(text: &str) -> Result<Stage, String> {
    let (connections, duration) = text.split_once(':').unwrap_or((text, "0"));
    let connections =
        connections.parse().map_err(|_| format!("expected CONNECTIONS:DURATION, found `{text}`"))?;
    Ok(Stage { connections, duration: parse_duration(duration)? })
}

/// Parses a header line; the client frames messages itself.
pub(super) fn parse_header(text: &str) -> Result<String, String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    http::HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("`{name}`: {error}"))?;
    http::HeaderValue::from_str(value).map_err(|error| format!("`{name}`: {error}"))?;
    if ["content-length", "transfer-encoding"].iter().any(|it| name.eq_ignore_ascii_case(it)) {
        return Err(format!("`{name}` is the client's\nhelp: --body-bytes sends a body"));
    }
    Ok(format!("{name}: {}\r\n", value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls() {
        let parsed = |text: &str| {
            let it = Target::from_str(text).expect(text);
            (it.authority, it.host, it.port, it.path)
        };
        let owned = |a: &str, h: &str, port, p: &str| (a.to_owned(), h.to_owned(), port, p.to_owned());
        assert_eq!(parsed("http://localhost"), owned("localhost", "localhost", 80, "/"));
        assert_eq!(parsed("HTTP://a.b:81?x=1#y"), owned("a.b:81", "a.b", 81, "/?x=1"));
        assert_eq!(parsed("http://[::1]:8080/a%20b?q"), owned("[::1]:8080", "::1", 8080, "/a%20b?q"));
    }

    #[test]
    fn wrong_urls_and_options_are_refused_with_a_reason() {
        for (text, reason) in [
            ("localhost:8080", "help: http://localhost:8080"),
            ("https://a/b", "help: http://a/b"),
            ("http://", "empty"),
            ("http://a:0/", "from 1 to 65535"),
            ("http://a:70000/", "port"),
            ("http://a/b c", "%XX"),
            ("http://u:p@a/", "Authorization"),
        ] {
            let error = Target::from_str(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(Target::from_str("http://host.invalid/").expect("well-formed").addresses().is_err());
        assert_eq!(parse_lengths("10-40"), Ok(10..=40));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        let stage = Stage { connections: 1_000, duration: Duration::from_millis(250) };
        assert_eq!(parse_stage("1000:250ms"), Ok(stage));
        assert!(["9-1", "", "-", "1-", "1KB"].iter().all(|text| parse_lengths(text).is_err()));
        assert!(["", "s", "1h", "-1s", "inf"].iter().all(|text| parse_duration(text).is_err()));
        assert!(["", ":1s", "1:", "-1"].iter().all(|text| parse_stage(text).is_err()));
        assert_eq!(parse_header("A:b "), Ok("A: b\r\n".to_owned()));
        assert!(
            ["A", "A b: c", "A: b\r\nC: d", "content-length: 3"].iter().all(|it| parse_header(it).is_err())
        );
    }
}
