//! Mistakes in the options of sites.

use std::fmt;

use crate::limits::MISTAKES_MAX;

/// A mistake in the options, or something that is probably one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The option as a key of the configuration file, such as `site[0].route[2].path`. Counted from 0.
    pub key: String,
    /// The mistake in one line. It never repeats the value of an option.
    pub message: String,
    /// A way to fix it. It may repeat the value of the option.
    pub help: Option<String>,
}

/// Mistakes, the first [`MISTAKES_MAX`] of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// At most [`MISTAKES_MAX`].
    pub list: Vec<Mistake>,
    /// Number of mistakes beyond that.
    pub left_out: usize,
}

/// An invalid value: a message and help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Returns an invalid value, without help if that is empty.
pub(crate) fn invalid(message: impl Into<String>, help: impl Into<String>) -> Invalid {
    Invalid { message: message.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
}

impl Mistakes {
    pub(crate) fn add(&mut self, key: impl Into<String>, Invalid { message, help }: Invalid) {
        match self.list.len() < MISTAKES_MAX {
            true => self.list.push(Mistake { key: key.into(), message, help }),
            false => self.left_out += 1,
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { key, message, help }) in self.list.iter().enumerate() {
            let line_end = if index > 0 { "\n" } else { "" };
            write!(f, "{line_end}{key}: {message}")?;
            help.iter().try_for_each(|help| write!(f, " ({help})"))?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}
