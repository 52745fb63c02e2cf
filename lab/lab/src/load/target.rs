//! The URL of a load, and the values of its options.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;

use crate::client::Stage;

/// Parses an `http` URL with a host.
pub(super) fn parse_url(text: &str) -> Result<Uri, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("expected `http://` first\nhelp: http://{text}"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(format!("the scheme `{scheme}` is not supported, only `http` is\nhelp: http://{rest}"));
    }
    let help = "help: encode other characters than letters, digits and -._~!$&'()*+,;=:@/? as %XX";
    let uri: Uri = text.parse().map_err(|error| format!("{error}\n{help}"))?;
    let (authority, host) = (authority(&uri), uri.host().unwrap_or_default());
    if authority.contains('@') {
        return Err("user and password are not sent\nhelp: -H 'Authorization: Basic …'".to_owned());
    }
    let has_port = host == authority || uri.port_u16().is_some_and(|port| port > 0);
    if host.is_empty() || !has_port {
        return Err("expected a host and a port from 1 to 65535".to_owned());
    }
    Ok(uri)
}

/// Returns host and port as written, for the header `Host`.
pub(super) fn authority(url: &Uri) -> &str {
    url.authority().map_or("", |authority| authority.as_str())
}

/// Returns all addresses of the host; none is an error.
pub(super) fn addresses(url: &Uri) -> Result<Vec<SocketAddr>, String> {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let found = (host, url.port_u16().unwrap_or(80)).to_socket_addrs();
    let found = found.map_err(|error| format!("host `{host}`: {error}"))?.collect::<Vec<_>>();
    if found.is_empty() { Err(format!("host `{host}` has no address")) } else { Ok(found) }
}

/// Returns path and query.
pub(super) fn path(url: &Uri) -> String {
    url.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
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
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let unit_s =
        [("ms", 0.001), ("", 1.0), ("s", 1.0), ("m", 60.0)].into_iter().find(|it| it.0 == &text[at..]);
    let seconds = text[..at].parse().ok().zip(unit_s).map(|(number, (_, unit_s)): (f64, _)| number * unit_s);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("expected a duration such as 10s, 500ms or 2m, found `{text}`"))
}

/// Parses `CONNECTIONS[:DURATION]`.
pub(crate) fn parse_stage(text: &str) -> Result<Stage, String> {
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
            let url = parse_url(text).expect(text);
            (authority(&url).to_owned(), url.port_u16(), path(&url))
        };
        let owned = |authority: &str, port, path: &str| (authority.to_owned(), port, path.to_owned());
        assert_eq!(parsed("http://localhost"), owned("localhost", None, "/"));
        assert_eq!(parsed("HTTP://a.b:81?x=1#y"), owned("a.b:81", Some(81), "/?x=1"));
        assert_eq!(parsed("http://[::1]:8080/a%20b?q"), owned("[::1]:8080", Some(8080), "/a%20b?q"));
        let local = parse_url("http://[::1]:8080/").and_then(|url| addresses(&url));
        assert_eq!(local, Ok(vec!["[::1]:8080".parse().expect("an address")]));
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
            let error = parse_url(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(parse_url("http://host.invalid/").and_then(|url| addresses(&url)).is_err());
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
