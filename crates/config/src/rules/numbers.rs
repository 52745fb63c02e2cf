//! Numbers within a range: integers, and durations and sizes as a string with a unit, or an integer in seconds or bytes.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use crate::context::{Context, KeyPath, Value};
use crate::section::Rule;
use crate::unknown::or_list;

/// Notation of numbers of one kind.
struct Notation {
    /// With an article, for messages.
    expected: &'static str,
    invalid: &'static str,
    help: &'static str,
    /// Units and their factors, those to print first. Empty: only integers are allowed.
    units: &'static [(&'static str, u64)],
    ignores_case: bool,
    /// The factor of an integer.
    of_integer: u64,
    zero: &'static str,
}

const INTEGER: Notation = Notation {
    expected: "an integer",
    invalid: "",
    help: "",
    units: &[],
    ignores_case: false,
    of_integer: 1,
    zero: "0",
};

/// In milliseconds.
const DURATION: Notation = Notation {
    expected: "a duration",
    invalid: "invalid duration",
    help: "write an integer and a unit (ms, s, m or h), such as \"10s\"",
    units: &[("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)],
    ignores_case: false,
    of_integer: 1000,
    zero: "0s",
};

/// In seconds.
const AGE: Notation = Notation {
    expected: "a duration",
    invalid: "invalid duration",
    help: "write an integer and a unit (y, d, h, m or s), such as \"1y\" or \"180d\"",
    units: &[("y", 31_536_000), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)],
    ignores_case: false,
    of_integer: 1,
    zero: "0s",
};

/// In bytes.
const SIZE: Notation = Notation {
    expected: "a size",
    invalid: "invalid size",
    help: "write an integer and a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB or TB), such as \"64KiB\"",
    units: &[
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1000),
        ("B", 1),
    ],
    ignores_case: true,
    of_integer: 1,
    zero: "0",
};

/// Parses a duration: an integer with the unit `ms`, `s`, `m` or `h`, or without one in seconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    DURATION.parse(text).map(Duration::from_millis)
}

/// Parses a size: an integer with a unit such as `KiB` or `MB`, or without one in bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    SIZE.parse(text)
}

impl Notation {
    /// Parses an integer with or without a unit.
    fn parse(&self, text: &str) -> Option<u64> {
        match text.parse::<u64>() {
            Ok(integer) => integer.checked_mul(self.of_integer),
            Err(_) => self.parse_with_unit(text),
        }
    }

    /// Parses an integer directly followed by a unit, such as `64KiB`.
    fn parse_with_unit(&self, text: &str) -> Option<u64> {
        let (digits, given) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let is_given =
            |unit: &str| if self.ignores_case { unit.eq_ignore_ascii_case(given) } else { unit == given };
        let &(_, factor) = self.units.iter().find(|(unit, _)| is_given(unit))?;
        digits.parse::<u64>().ok()?.checked_mul(factor)
    }

    /// Formats a number with the first unit that divides it.
    fn format(&self, number: u64) -> String {
        match self.units.iter().find(|(_, factor)| number.is_multiple_of(*factor)) {
            _ if number == 0 => self.zero.to_owned(),
            Some((unit, factor)) => format!("{}{unit}", number / factor),
            None => number.to_string(),
        }
    }
}

/// A number within a range, or out of a list.
pub(crate) struct Number<T> {
    notation: &'static Notation,
    accepted: Accepted,
    from: fn(u64) -> Option<T>,
    to: fn(&T) -> u64,
}

enum Accepted {
    Range(RangeInclusive<u64>),
    OneOf(&'static [u64]),
}

impl<T: TryFrom<u64> + Copy> Number<T>
where
    u64: From<T>,
{
    const fn new(notation: &'static Notation, accepted: Accepted) -> Self {
        Self { notation, accepted, from: |number| T::try_from(number).ok(), to: |&value| u64::from(value) }
    }
}

/// An integer within a range.
pub(crate) const fn integer<T: TryFrom<u64> + Copy>(range: RangeInclusive<u64>) -> Number<T>
where
    u64: From<T>,
{
    Number::new(&INTEGER, Accepted::Range(range))
}

/// One integer of a list.
pub(crate) const fn one_of(list: &'static [u64]) -> Number<u16> {
    Number::new(&INTEGER, Accepted::OneOf(list))
}

/// A size within a range in bytes.
pub(crate) const fn size<T: TryFrom<u64> + Copy>(range: RangeInclusive<u64>) -> Number<T>
where
    u64: From<T>,
{
    Number::new(&SIZE, Accepted::Range(range))
}

/// A duration within a range in milliseconds.
pub(crate) const fn duration(range: RangeInclusive<u64>) -> Number<Duration> {
    Number {
        notation: &DURATION,
        accepted: Accepted::Range(range),
        from: |ms| Some(Duration::from_millis(ms)),
        to: |duration| duration.as_millis() as u64,
    }
}

/// A long duration within a range in seconds.
pub(crate) const fn age(range: RangeInclusive<u64>) -> Number<Duration> {
    Number {
        notation: &AGE,
        accepted: Accepted::Range(range),
        from: |seconds| Some(Duration::from_secs(seconds)),
        to: Duration::as_secs,
    }
}

impl<T> Rule<T> for Number<T> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T) {
        let allowed = self.allowed();
        let number = match value.get_ref() {
            DeValue::Integer(integer) => {
                let integer = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                integer.and_then(|integer| integer.checked_mul(self.notation.of_integer))
            }
            DeValue::String(_) if !self.notation.units.is_empty() => {
                let Some(text) = context.text(value, &allowed) else { return };
                let Some(number) = self.notation.parse_with_unit(&text) else {
                    return context.error_with_help(&value.span(), self.notation.invalid, self.notation.help);
                };
                Some(number)
            }
            _ => return context.mismatch(value, self.notation.expected, &allowed),
        };
        let (is_accepted, message): (&dyn Fn(&u64) -> bool, _) = match &self.accepted {
            Accepted::Range(range) => (&|number| range.contains(number), "value is out of range"),
            Accepted::OneOf(list) => (&|number| list.contains(number), "unsupported value"),
        };
        match number.filter(is_accepted).and_then(self.from) {
            Some(number) => *place = number,
            None => context.error_with_help(&value.span(), message, format!("allowed: {allowed}")),
        }
    }

    fn write(&self, value: &T, _: &KeyPath<'_>) -> Option<String> {
        let text = self.notation.format((self.to)(value));
        let is_integer = text.bytes().all(|byte| byte.is_ascii_digit());
        Some(if is_integer { text } else { format!("\"{text}\"") })
    }

    fn allowed(&self) -> String {
        let text = |number: &u64| self.notation.format(*number);
        match &self.accepted {
            Accepted::Range(range) => format!("{} to {}", text(range.start()), text(range.end())),
            Accepted::OneOf(list) => or_list(&list.iter().map(text).collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AGE, DURATION, Notation, SIZE};

    #[test]
    fn parses_and_formats_numbers_with_units() {
        let cases: [(&Notation, &[_], &[_]); 3] = [
            (
                &DURATION,
                &[
                    ("500ms", 500, "500ms"),
                    ("1500ms", 1500, "1500ms"),
                    ("10s", 10_000, "10s"),
                    ("60s", 60_000, "1m"),
                    ("90m", 5_400_000, "90m"),
                    ("24h", 86_400_000, "24h"),
                    ("0s", 0, "0s"),
                    ("30", 30_000, "30s"),
                ],
                &["", "s", "-1s", "1.5s", "10 s", "10S", "10sec", "99999999999999999999s", "1m30s"],
            ),
            (
                &AGE,
                &[
                    ("1y", 31_536_000, "1y"),
                    ("365d", 31_536_000, "1y"),
                    ("180d", 15_552_000, "180d"),
                    ("5m", 300, "5m"),
                    ("0s", 0, "0s"),
                    ("300", 300, "5m"),
                ],
                &["", "y", "1.5y", "1 y", "1Y", "1year", "500ms", "99999999999999999999y"],
            ),
            (
                &SIZE,
                &[
                    ("64KiB", 65_536, "64KiB"),
                    ("64kib", 65_536, "64KiB"),
                    ("10MB", 10_000_000, "10MB"),
                    ("10kB", 10_000, "10KB"),
                    ("1024B", 1024, "1KiB"),
                    ("1TiB", 1 << 40, "1TiB"),
                    ("240B", 240, "240B"),
                    ("0B", 0, "0"),
                    ("64", 64, "64B"),
                ],
                &["", "B", "64K", "64Ki", "-1B", "1.5MB", "64 KiB", "99999999TiB"],
            ),
        ];
        for (notation, valid, invalid) in cases {
            for &(text, number, formatted) in valid {
                assert_eq!(notation.parse(text), Some(number), "{text}");
                assert_eq!(notation.format(number), formatted);
            }
            for text in invalid {
                assert_eq!(notation.parse(text), None, "{text}");
            }
        }
    }
}
