//! What may stand behind a key: one rule for each kind of value, to be put together.

mod address;
mod choice;
mod flag;
mod folder;
mod integer;
mod list;
mod map;
mod optional;
mod pattern;
mod tables;
mod text;

use toml::Spanned;
use toml::de::DeValue;

use crate::pen::Pen;
use crate::reading::Reading;

pub(crate) use address::ListenAddress;
pub(crate) use choice::{Choice, Choices};
pub(crate) use flag::Flag;
pub(crate) use folder::Folder;
pub(crate) use integer::{Integer, OneOf};
pub(crate) use list::List;
pub(crate) use map::Map;
pub(crate) use optional::{Optional, OrOff};
pub(crate) use pattern::PathPattern;
pub(crate) use tables::{Inline, Tables};
pub(crate) use text::{Mode, Text};

/// How a value is read and written.
pub(crate) trait Rule<T> {
    /// Reads a value into its place, or says what is wrong with it and leaves the place as it is.
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut T);

    /// Writes a value as TOML; `false` where nothing stands there.
    fn write(&self, value: &T, pen: &mut Pen<'_>) -> bool;

    /// What may stand there, in a few words.
    fn allowed(&self) -> String;
}
