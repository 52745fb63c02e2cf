//! Formats numbers with their units, for people.

use crate::document::Percentile;

/// Text for a number that is unknown.
pub const NO_VALUE: &str = "–";

/// Formats a number with thousands separators.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number, rounded, with thousands separators.
fn rounded(number: f64) -> String {
    // A count beyond 2^64 doesn't exist, and the conversion saturates.
    grouped(number.round() as u64)
}

/// Formats a number per second: one decimal below 10.
#[must_use]
pub fn rate(number: Option<f64>) -> String {
    match number {
        None => NO_VALUE.to_owned(),
        Some(number) if number > 0.0 && number < 9.95 => format!("{:.1}", number.max(0.1)),
        Some(number) => rounded(number),
    }
}

/// Formats a part of 1 as a percentage.
#[must_use]
pub fn part(number: f64) -> String {
    match number {
        0.0 => "0 %".to_owned(),
        _ if number < 0.001 => "< 0.1 %".to_owned(),
        _ if number < 0.0995 => format!("{:.1} %", 100.0 * number),
        _ => format!("{:.0} %", 100.0 * number),
    }
}

/// Formats bytes in a unit of which there are fewer than 1,024.
#[must_use]
pub fn bytes(number: Option<f64>) -> String {
    let Some(mut number) = number else { return NO_VALUE.to_owned() };
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    while number >= if unit == 0 { 1024.0 } else { 1023.5 } && unit < units.len() - 1 {
        number /= 1024.0;
        unit += 1;
    }
    let digits = if unit > 0 && number < 99.95 { format!("{number:.1}") } else { rounded(number) };
    format!("{digits} {}", units[unit])
}

/// Formats seconds as microseconds, milliseconds or seconds.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        _ if seconds * 1e6 < 999.5 => return format!("{} µs", rounded(seconds * 1e6)),
        _ if seconds * 1e3 < 999.5 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    if scaled < 9.95 { format!("{scaled:.1} {unit}") } else { format!("{} {unit}", rounded(scaled)) }
}

/// Formats the estimate of a percentile, or the bound of a bucket that is open on one side.
#[must_use]
pub fn percentile(found: Option<Percentile>) -> String {
    match found {
        None => NO_VALUE.to_owned(),
        Some(Percentile { low, high: None, .. }) => format!("> {}", duration(low)),
        Some(Percentile { low: 0.0, high: Some(high), .. }) => format!("< {}", duration(high)),
        Some(Percentile { estimate, .. }) => duration(estimate),
    }
}

/// Formats seconds as the two largest units of days, hours, minutes and seconds.
#[must_use]
pub fn age(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let parts =
        [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let Some(first) = parts.iter().position(|(count, _)| *count > 0) else { return "0 s".to_owned() };
    let shown = parts[first..].iter().take(2).filter(|(count, _)| *count > 0);
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Formats the seconds until something ends, in whole days, hours or minutes.
#[must_use]
pub fn left(seconds: f64) -> String {
    let (unit, name) = match seconds {
        86_400.0.. => (86_400.0, "d"),
        3600.0.. => (3600.0, "h"),
        _ => (60.0, "min"),
    };
    format!("{} {name}", rounded((seconds.max(0.0) / unit).floor()))
}

/// Formats a number of things, such as `1 error was` or `2 errors were`.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}
