//! Metrics as text: OpenMetrics 1.0 and the older text format of Prometheus.

use std::fmt::{Display, Write};

use crate::families::{FAMILIES, Family, Kind};
use crate::histogram::HistogramValues;
use crate::snapshot::Snapshot;

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus 0.0.4.
    Prometheus,
}

impl TextFormat {
    /// Returns the format that a client prefers by its `Accept` (RFC 9110 section 12.5.1).
    ///
    /// OpenMetrics is sent to clients that name it, as Prometheus does, and the older format to all others: browsers and
    /// `promtool check metrics` read only that.
    #[must_use]
    pub fn accepted(accept: Option<&[u8]>) -> Self {
        let accept = accept.and_then(|accept| std::str::from_utf8(accept).ok()).unwrap_or_default();
        let quality = |wanted: &str| {
            let of_entry = |entry: &str| {
                let mut parts = entry.split(';').map(str::trim);
                let is_wanted = parts.next()?.eq_ignore_ascii_case(wanted);
                let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
                is_wanted.then(|| quality.map_or(1.0, |quality| quality.parse::<f32>().unwrap_or(0.0)))
            };
            accept.split(',').filter_map(of_entry).fold(0.0, f32::max)
        };
        let open_metrics = quality("application/openmetrics-text");
        match open_metrics > 0.0 && open_metrics >= quality("text/plain") {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Appends all metrics of a snapshot.
pub fn write_text(snapshot: &Snapshot, format: TextFormat, text: &mut String) {
    for family in FAMILIES {
        let mut samples = Samples { text, format, family, has_head: false };
        (family.samples)(snapshot, &mut samples);
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
}

/// Writes the values of one metric.
pub(crate) struct Samples<'a> {
    text: &'a mut String,
    format: TextFormat,
    family: &'a Family,
    has_head: bool,
}

impl Samples<'_> {
    /// Adds a value with the values of the metric's labels.
    pub(crate) fn add(&mut self, labels: &[&str], value: impl Display) {
        self.head();
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        self.push(format_args!("{}{}", self.family.name, self.family.suffix()));
        let mut open = '{';
        for (name, value) in self.family.labels.iter().zip(labels) {
            self.push(format_args!("{open}{name}=\"{}\"", Escaped(value)));
            open = ',';
        }
        self.text.push_str(if open == ',' { "} " } else { " " });
        self.push(format_args!("{value}\n"));
    }

    /// Adds all values of a histogram.
    pub(crate) fn histogram(&mut self, values: &HistogramValues) {
        self.head();
        let name = self.family.name;
        for (bound, count) in values.cumulative() {
            match bound {
                // The same in both formats: `1.0`, where the older one may have `1`.
                Some(bound) if bound.fract() == 0.0 => {
                    self.push(format_args!("{name}_bucket{{le=\"{bound:.1}\"}} {count}\n"));
                }
                Some(bound) => self.push(format_args!("{name}_bucket{{le=\"{bound}\"}} {count}\n")),
                None => self.push(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}\n")),
            }
        }
        self.push(format_args!("{name}_sum {}\n{name}_count {}\n", values.sum_seconds(), values.count()));
    }

    /// Adds the lines before the first value. A metric without values has none.
    fn head(&mut self) {
        if std::mem::replace(&mut self.has_head, true) {
            return;
        }
        let Family { name, kind, help, .. } = self.family;
        let (suffix, kind) = match (self.format, kind) {
            (TextFormat::OpenMetrics, Kind::Info) => ("", "info"),
            (TextFormat::Prometheus, Kind::Info) => ("_info", "gauge"),
            (TextFormat::OpenMetrics, Kind::Counter) => ("", "counter"),
            (TextFormat::Prometheus, Kind::Counter) => ("_total", "counter"),
            (_, Kind::Gauge) => ("", "gauge"),
            (_, Kind::Histogram) => ("", "histogram"),
        };
        self.push(format_args!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"));
        if let (TextFormat::OpenMetrics, Some(unit)) = (self.format, self.family.unit()) {
            self.push(format_args!("# UNIT {name} {unit}\n"));
        }
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(text);
    }
}

/// The value of a label, with backslashes, quotes and line ends escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            _ => f.write_char(letter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Escaped, TextFormat};

    #[test]
    fn selects_the_format_by_accept() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, is_open) in [
            (None, false),
            (Some("*/*"), false),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), false),
            (Some("application/openmetrics-text"), true),
            (Some("application/openmetrics-text;q=0"), false),
            (Some("application/openmetrics-text;q=nan"), false),
            (Some("Application/OpenMetrics-Text; version=1.0.0 ; Q=0.1"), true),
            (Some("text/plain, application/openmetrics-text;q=0.9"), false),
            (Some(prometheus), true),
            (Some(",;q=,,"), false),
        ] {
            let format = TextFormat::accepted(accept.map(str::as_bytes));
            assert_eq!(format == TextFormat::OpenMetrics, is_open, "{accept:?}");
        }
    }

    #[test]
    fn escapes_values_of_labels() {
        assert_eq!(Escaped("a\\b\"c\nd").to_string(), "a\\\\b\\\"c\\nd");
    }
}
