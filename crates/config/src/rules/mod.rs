//! Rules for values: how each kind is read, written and described.

mod collections;
mod names;
mod numbers;
mod strings;
pub(crate) mod units;

use toml::Spanned;
use toml::de::DeValue;

use crate::context::Context;
use crate::toml_writer::TomlWriter;

pub(crate) use collections::{Inline, List, Map, Optional, Tables};
pub(crate) use names::{Choice, Choices, Flag, OrFalse};
pub(crate) use numbers::{Integer, OneOf};
pub(crate) use strings::{Folder, ListenAddress, MediaType, Mode, Text};
pub(crate) use units::{Period, Size};

/// Reads and writes values of one kind.
pub(crate) trait Rule<T> {
    /// Reads a value, or reports an error and keeps the previous value.
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut T);

    /// Writes a value as TOML; returns `false` if the key is absent.
    fn write(&self, value: &T, writer: &mut TomlWriter<'_>) -> bool;

    /// Describes the allowed values.
    fn allowed(&self) -> String;
}
