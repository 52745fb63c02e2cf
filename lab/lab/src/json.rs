//! JSON, written and not read.

use std::fmt::{self, Display, Write};

/// A value of a result file.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// What was not measured.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A figure; one that is not finite is written as `null`.
    Number(f64),
    /// A count, written without loss.
    Count(u64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Json>),
    /// Values by name, in order.
    Map(Vec<(&'static str, Json)>),
}

impl Json {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A figure, or null where there is none.
    pub fn figure(figure: Option<f64>) -> Self {
        figure.map_or(Self::Null, Self::Number)
    }

    fn write(&self, out: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(value) if value.is_finite() => write!(out, "{value}"),
            Self::Number(_) => out.write_str("null"),
            Self::Count(value) => write!(out, "{value}"),
            Self::Text(text) => write_text(out, text),
            Self::List(values) => {
                let write = |out: &mut fmt::Formatter<'_>, value: &Self| value.write(out, depth + 1);
                write_nested(out, depth, ['[', ']'], values, write)
            }
            Self::Map(entries) => {
                let write = |out: &mut fmt::Formatter<'_>, (name, value): &(&str, Self)| {
                    write!(out, "\"{name}\": ")?;
                    value.write(out, depth + 1)
                };
                write_nested(out, depth, ['{', '}'], entries, write)
            }
        }
    }
}

impl Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, 0)
    }
}

fn write_nested<T>(
    out: &mut fmt::Formatter<'_>,
    depth: usize,
    [open, close]: [char; 2],
    items: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    out.write_char(open)?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\n{:width$}", "", width = (depth + 1) * 2)?;
        write(out, item)?;
    }
    if !items.is_empty() {
        write!(out, "\n{:width$}", "", width = depth * 2)?;
    }
    out.write_char(close)
}

fn write_text(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32)?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}
