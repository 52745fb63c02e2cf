//! Rules for values: how each kind is read, written and described.

mod collections;
mod numbers;
mod strings;

use toml::Spanned;
use toml::de::DeValue;

use crate::context::{Context, KeyPath};
use crate::section::Description;

pub(crate) use collections::{Inline, List, Map, Optional, Table, Tables};
pub(crate) use numbers::{duration, integer, one_of, size};
pub use numbers::{parse_duration, parse_size};
pub use strings::Choices;
pub(crate) use strings::{Choice, Flag, OrFalse, Text, choices, text};

/// A value with its location in the file.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// Reads and writes values of one kind.
pub(crate) trait Rule<T> {
    /// Reads a value, or reports an error and keeps the previous value.
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T);

    /// Formats a value as TOML; `None` if the key is absent, or a table with a heading.
    fn write(&self, value: &T, at: &KeyPath<'_>) -> Option<String>;

    /// Describes the allowed values.
    fn allowed(&self) -> String;

    /// Describes the table that a value is, or that its elements are, and the tables within.
    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        let _ = (heading, means);
        Vec::new()
    }

    /// Prints a table with a heading, or several.
    fn print(&self, value: &T, heading: &str, at: &KeyPath<'_>, text: &mut String) {
        let _ = (value, heading, at, text);
    }
}
