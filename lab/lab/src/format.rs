//! Numbers, medians and tables as text.

use crate::statistics::Estimate;

/// Formats a median and its interval.
pub(crate) fn show(estimate: Option<Estimate>) -> String {
    let Some(Estimate { median, low, high, values }) = estimate else { return "-".to_owned() };
    let decimals = if median < 1_000.0 { 3 } else { 0 };
    match (low, high) {
        (Some(low), Some(high)) => format!("{median:.decimals$} [{low:.decimals$} {high:.decimals$}]"),
        _ if values == 1 => format!("{median:.decimals$} [one value]"),
        _ => format!("{median:.decimals$} [too few]"),
    }
}

/// Pads columns to their widest cell.
pub(crate) fn align<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Rounds a number to hundredths, from 100 to a whole one.
pub(crate) fn rounded(value: f64) -> String {
    if value.abs() < 100.0 { format!("{}", (value * 100.0).round() / 100.0) } else { format!("{value:.0}") }
}

/// Formats a number with three significant digits, near 1 with one more, and groups of thousands.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        ratio if (0.9..1.5).contains(&ratio) => 3,
        other => (2.0 - other.log10().floor()).clamp(0.0, 6.0) as usize,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    group(whole) + fraction
}

/// Formats a whole number with groups of thousands.
pub(crate) fn grouped(number: u64) -> String {
    group(&number.to_string())
}

fn group(digits: &str) -> String {
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a tick: no needless zeros, whole thousands as k.
pub(crate) fn short(value: f64) -> String {
    let is_whole = |unit: f64| value.abs() >= 10.0 * unit && (value / unit).fract() == 0.0;
    let (value, unit) = match value {
        millions if is_whole(1e6) || millions == 1e6 => (millions / 1e6, "M"),
        thousands if is_whole(1e3) => (thousands / 1e3, "k"),
        _ => (value, ""),
    };
    let text = number(value);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}
