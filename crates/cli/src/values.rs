//! Parsers of the values of flags.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use shearwater_config::{Choices, parse_duration, parse_size};
use shearwater_precompress::Coding;

/// Parses the address of `--listen`. A port without an address is on 127.0.0.1, and so is `localhost`.
pub(crate) fn listen_address(given: &str) -> Result<String, String> {
    if given.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{given}"));
    }
    if let Some(port) = given.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
        return Err(format!(
            "the address is missing: 127.0.0.1:{port} is local only, 0.0.0.0:{port} is all addresses"
        ));
    }
    let is_host = given.parse::<IpAddr>().is_ok() || !given.contains(':') || given.ends_with(']');
    if is_host && !given.is_empty() {
        let is_v6 = given.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        let host = if is_v6 { format!("[{given}]") } else { given.to_owned() };
        return Err(format!("the port is missing, as in {host}:8080"));
    }
    // The path of a socket, or the URL of `top`.
    if given.starts_with("unix:") || given.contains('/') {
        return Ok(given.to_owned());
    }
    match given.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => {
            Err(format!("expected a port from 0 to 65535 after the colon, found `{port}`"))
        }
        Some(("localhost", port)) => Ok(format!("127.0.0.1:{port}")),
        _ => Ok(given.to_owned()),
    }
}

/// Parses an integer of a range.
pub(crate) fn integer<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |given| {
        let (first, last) = (range.start(), range.end());
        let number = given.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a number from {first} to {last}"))
    }
}

/// Parses a status and the path of its error page, such as `404=/404.html`.
pub(crate) fn error_page(given: &str) -> Result<(u16, String), String> {
    let expected = "expected STATUS=FILE, such as 404=/404.html";
    let (status, file) = given.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or(expected)?;
    let status = integer(400..=599)(status).map_err(|error| format!("{error} before the equals sign"))?;
    Ok((status, format!("/{}", file.trim_start_matches('/'))))
}

/// Parses a header, such as `X-Frame-Options: DENY`.
pub(crate) fn header(given: &str) -> Result<(String, String), String> {
    let (name, value) =
        given.split_once(':').ok_or("expected NAME: VALUE, such as 'X-Frame-Options: DENY'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Parses a duration.
pub(crate) fn duration(given: &str) -> Result<Duration, String> {
    parse_duration(given).ok_or_else(|| "expected a duration, such as 10s or 500ms".to_owned())
}

/// Parses the name of a choice in a configuration.
pub(crate) fn choice<T: Choices + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let name = |&(name, _, means): &(&'static str, T, &'static str)| PossibleValue::new(name).help(means);
    let value = |given: &str| T::ALL.iter().find(|(name, ..)| *name == given).map(|&(_, value, _)| value);
    PossibleValuesParser::new(T::ALL.iter().map(name))
        .map(move |given| value(&given).expect("a possible value"))
}

/// Parses the name of a format.
pub(crate) fn format() -> impl TypedValueParser<Value = Coding> {
    let value = |format: Coding| {
        let means = match format {
            Coding::Br => "Brotli, NAME.br",
            Coding::Zstd => "Zstandard, NAME.zst",
            Coding::Gzip => "gzip, NAME.gz",
        };
        PossibleValue::new(format.name()).help(means)
    };
    PossibleValuesParser::new(Coding::ALL.map(value)).map(|given| named(&given).expect("a possible value"))
}

fn named(name: &str) -> Option<Coding> {
    Coding::ALL.into_iter().find(|format| format.name() == name)
}

/// Parses a format's name and a level, such as `br=9`.
pub(crate) fn level(text: &str) -> Result<(Coding, u32), String> {
    let (name, level) = text.split_once('=').ok_or("expected FORMAT=LEVEL, such as br=9")?;
    let format = named(name).ok_or_else(|| format!("unknown format {name}, expected br, zstd or gzip"))?;
    let level =
        level.parse().map_err(|_| format!("expected a number after the equals sign, found `{level}`"))?;
    Ok((format, level))
}

/// Parses the size of `--min-bytes`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "expected a size, such as 1KiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{error_page, header, integer, level, listen_address};

    #[test]
    fn says_what_was_expected() {
        let number = integer(0..=1024_u16);
        assert_eq!((number("0"), number("1024")), (Ok(0), Ok(1024)));
        for wrong in ["x", "", "-1", "1.5", "1025", "99999999999999999999"] {
            assert_eq!(number(wrong), Err("expected a number from 0 to 1024".to_owned()), "{wrong}");
        }
        assert_eq!(error_page("404=404.html"), Ok((404, "/404.html".to_owned())));
        for wrong in ["404", "404=", "200=/a", "x=/a"] {
            assert!(error_page(wrong).is_err(), "{wrong}");
        }
        assert_eq!(header("A: b: c"), Ok(("A".to_owned(), "b: c".to_owned())));
        assert!(header("A").is_err());
        let error = level("br=x").expect_err("no number");
        assert_eq!(error, "expected a number after the equals sign, found `x`");
    }

    #[test]
    fn localhost_is_the_loopback_address() {
        for (given, address) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("unix:/run/a:b", "unix:/run/a:b"),
            ("unix:a", "unix:a"),
            ("http://127.0.0.1:9180/", "http://127.0.0.1:9180/"),
        ] {
            assert_eq!(listen_address(given), Ok(address.to_owned()));
        }
        for given in ["localhost", "localhost:x", "localhost:65536", "127.0.0.1:http", "::", ":80"] {
            assert!(listen_address(given).is_err(), "{given}");
        }
    }
}
