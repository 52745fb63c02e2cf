//! State of reading one configuration: the current key, the problems found, the texts with variables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostics::Found;
use crate::limits::{PROBLEMS_MAX, VALUE_BYTES_MAX};
use crate::variables::substitute;

/// Passed to every rule while a file is read.
pub(crate) struct Context<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The folder that relative paths are resolved against.
    pub(crate) base: &'a Path,
    /// The current key, such as `site[0].root`.
    path: String,
    pub(crate) written: Written,
    pub(crate) found: Vec<Found>,
    pub(crate) left_out: usize,
}

/// Texts that contain variables, by key: as written, and with the variables substituted.
pub(crate) type Written = BTreeMap<String, (String, String)>;

/// A string that was read.
pub(crate) struct Text {
    /// With variables substituted.
    pub(crate) value: String,
    /// As written, for messages: a variable may hold a secret.
    pub(crate) shown: String,
}

impl<'a> Context<'a> {
    pub(crate) fn new(base: &'a Path, environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let (path, written) = (String::new(), Written::new());
        Self { environment, base, path, written, found: Vec::new(), left_out: 0 }
    }

    /// Runs `read` with the current key extended by `.name`.
    pub(crate) fn within<R>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.extended(&format!("{dot}{name}"), read)
    }

    /// Runs `read` with the current key extended by `[index]`.
    pub(crate) fn within_element<R>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> R) -> R {
        self.extended(&format!("[{index}]"), read)
    }

    fn extended<R>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.path.len();
        self.path.push_str(part);
        let result = read(self);
        self.path.truncate(len);
        result
    }

    /// Reports an error at the current key.
    pub(crate) fn error(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.report(self.path.clone(), span, message.into(), None);
    }

    /// Reports an error at the current key, with help.
    pub(crate) fn error_with_help(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(self.path.clone(), span, message.into(), Some(help.into()));
    }

    /// Reports an error at any key.
    pub(crate) fn report(&mut self, key: String, span: &Range<usize>, message: String, help: Option<String>) {
        if self.found.len() < PROBLEMS_MAX {
            self.found.push(Found { span: span.clone(), key, message, help });
        } else {
            self.left_out += 1;
        }
    }

    /// Reports a value of another type.
    pub(crate) fn mismatch(&mut self, value: &Spanned<DeValue<'_>>, expected: &str, allowed: &str) {
        let message = format!("expected {expected}, found {}", type_name(value.get_ref()));
        self.error_with_help(&value.span(), message, format!("allowed: {allowed}"));
    }

    /// Returns whether a key and everything in it is free of errors so far.
    pub(crate) fn is_sound(&self, key: &str) -> bool {
        self.left_out == 0 && !self.found.iter().any(|found| found.key.starts_with(key))
    }

    /// Records the final form of the current key's text, if it contains variables.
    pub(crate) fn becomes(&mut self, value: &str) {
        if let Some((_, whole)) = self.written.get_mut(&self.path) {
            value.clone_into(whole);
        }
    }

    /// Reads a string and substitutes its variables.
    pub(crate) fn text(&mut self, value: &Spanned<DeValue<'_>>, allowed: &str) -> Option<Text> {
        let DeValue::String(written) = value.get_ref() else {
            self.mismatch(value, "a string", allowed);
            return None;
        };
        let text = match substitute(written, self.environment) {
            Ok(None) => Text { value: written.to_string(), shown: written.to_string() },
            Ok(Some(whole)) => {
                self.written.insert(self.path.clone(), (written.to_string(), whole.clone()));
                Text { value: whole, shown: written.to_string() }
            }
            Err((message, help)) => {
                self.error_with_help(&value.span(), message, help);
                return None;
            }
        };
        if text.value.len() > VALUE_BYTES_MAX {
            self.error(&value.span(), format!("string is longer than {VALUE_BYTES_MAX} bytes"));
            return None;
        }
        Some(text)
    }
}

/// Returns the name of a value's type, with its article.
pub(crate) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
