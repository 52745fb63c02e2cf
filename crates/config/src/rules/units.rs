//! Durations and sizes: a string with a unit, or an integer in seconds or bytes.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use super::numbers::{out_of_range, parsed};
use crate::context::Context;
use crate::toml_writer::TomlWriter;

/// Units of durations in milliseconds, largest first.
const DURATION_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of sizes in bytes, those to print first.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

/// Parses a duration: an integer with the unit `ms`, `s`, `m` or `h`, or without one in seconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    number_with_unit(text, &DURATION_UNITS, |given, unit| given == unit).map(Duration::from_millis)
}

/// Parses a size: an integer with a unit such as `KiB` or `MB`, or without one in bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| size_with_unit(text))
}

fn size_with_unit(text: &str) -> Option<u64> {
    number_with_unit(text, &SIZE_UNITS, str::eq_ignore_ascii_case)
}

/// Parses an integer directly followed by a unit, such as `64KiB`.
fn number_with_unit(text: &str, units: &[(&str, u64)], is_unit: fn(&str, &str) -> bool) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, given) = text.split_at(end);
    let &(_, factor) = units.iter().find(|(unit, _)| is_unit(given, unit))?;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Formats a number with the first unit that divides it.
fn with_unit(number: u64, units: &[(&str, u64)]) -> Option<String> {
    let (unit, factor) = units.iter().find(|(_, factor)| number > 0 && number.is_multiple_of(*factor))?;
    Some(format!("{}{unit}", number / factor))
}

/// Formats a duration as it is written in the file: `10s`, `0s`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    with_unit(ms, &DURATION_UNITS).unwrap_or_else(|| "0s".to_owned())
}

/// A duration within a range in milliseconds. Integers are in seconds.
pub(crate) struct Period(pub(crate) RangeInclusive<u64>);

impl Rule<Duration> for Period {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Duration) {
        let ms = match value.get_ref() {
            DeValue::Integer(number) => {
                parsed(number).map_or(u64::MAX, |seconds| seconds.saturating_mul(1000))
            }
            DeValue::String(_) => {
                let Some(text) = context.text(value, &self.allowed()) else { return };
                let Some(ms) = number_with_unit(&text.value, &DURATION_UNITS, |given, unit| given == unit)
                else {
                    let help = "write an integer and a unit (ms, s, m or h), such as \"10s\"";
                    return context.error_with_help(&value.span(), "invalid duration", help);
                };
                ms
            }
            _ => return context.mismatch(value, "a duration", &self.allowed()),
        };
        match self.0.contains(&ms) {
            true => *place = Duration::from_millis(ms),
            false => out_of_range(value, context, &self.allowed()),
        }
    }

    fn write(&self, value: &Duration, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain(&format!("\"{}\"", duration_text(*value)));
        true
    }

    fn allowed(&self) -> String {
        let text = |ms: &u64| duration_text(Duration::from_millis(*ms));
        format!("{} to {}", text(self.0.start()), text(self.0.end()))
    }
}

/// A size within a range in bytes. Integers are in bytes.
pub(crate) struct Size(pub(crate) RangeInclusive<u64>);

impl<T: TryFrom<u64> + Copy> Rule<T> for Size
where
    u64: From<T>,
{
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let bytes = match value.get_ref() {
            DeValue::Integer(number) => parsed(number),
            DeValue::String(_) => {
                let Some(text) = context.text(value, &allowed) else { return };
                let bytes = size_with_unit(&text.value);
                if bytes.is_none() {
                    let help = "write an integer and a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB or TB), such as \"64KiB\"";
                    return context.error_with_help(&value.span(), "invalid size", help);
                }
                bytes
            }
            _ => return context.mismatch(value, "a size", &allowed),
        };
        match bytes.filter(|bytes| self.0.contains(bytes)).and_then(|bytes| T::try_from(bytes).ok()) {
            Some(bytes) => *place = bytes,
            None => out_of_range(value, context, &allowed),
        }
    }

    fn write(&self, value: &T, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain(&size_toml(u64::from(*value)));
        true
    }

    fn allowed(&self) -> String {
        let text = |bytes: &u64| size_toml(*bytes).replace('"', "");
        format!("{} to {}", text(self.0.start()), text(self.0.end()))
    }
}

/// Formats a size as TOML: in the largest unit that divides it, and 0 as an integer.
fn size_toml(bytes: u64) -> String {
    with_unit(bytes, &SIZE_UNITS).map_or_else(|| "0".to_owned(), |text| format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration_text, parse_duration, parse_size, size_toml};

    #[test]
    fn parses_and_formats_durations() {
        for (text, ms, formatted) in [
            ("500ms", 500, "500ms"),
            ("1500ms", 1500, "1500ms"),
            ("10s", 10_000, "10s"),
            ("60s", 60_000, "1m"),
            ("90m", 5_400_000, "90m"),
            ("24h", 86_400_000, "24h"),
            ("0s", 0, "0s"),
            ("30", 30_000, "30s"),
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(text), Some(duration), "{text}");
            assert_eq!(duration_text(duration), formatted);
        }
        for text in ["", "s", "-1s", "1.5s", "10 s", "10S", "10sec", "99999999999999999999s", "1m30s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn parses_and_formats_sizes() {
        for (text, bytes, formatted) in [
            ("64KiB", 65_536, "\"64KiB\""),
            ("64kib", 65_536, "\"64KiB\""),
            ("10MB", 10_000_000, "\"10MB\""),
            ("10kB", 10_000, "\"10KB\""),
            ("1024B", 1024, "\"1KiB\""),
            ("1TiB", 1 << 40, "\"1TiB\""),
            ("240B", 240, "\"240B\""),
            ("0B", 0, "0"),
            ("64", 64, "\"64B\""),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(size_toml(bytes), formatted);
        }
        for text in ["", "B", "64K", "64Ki", "-1B", "1.5MB", "64 KiB", "99999999TiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
