//! A configuration while it is read: where it is, what was found wrong, which texts held variables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use crate::errors::Found;
use crate::limits::{KEY_CHARS_MAX, PROBLEMS_MAX, VALUE_BYTES_MAX};
use crate::source::printable;
use crate::substitute::substitute;

/// What goes with the reader through the whole file.
pub(crate) struct Reading<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The folder that relative paths begin in.
    pub(crate) base: &'a Path,
    /// The key being read, such as `site[0].root`.
    path: String,
    /// Texts that held variables, by key.
    pub(crate) written: Written,
    pub(crate) found: Vec<Found>,
    pub(crate) left_out: usize,
}

/// Texts that held variables: by key, as they were written, and what became of them.
pub(crate) type Written = BTreeMap<String, (String, String)>;

/// A text that was read.
pub(crate) struct Text {
    /// With its variables put in.
    pub(crate) value: String,
    /// As it was written: a variable may be a secret, which no message repeats.
    pub(crate) shown: String,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(base: &'a Path, environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            environment,
            base,
            path: String::new(),
            written: Written::new(),
            found: Vec::new(),
            left_out: 0,
        }
    }

    /// Reads something of a key inside of the present one.
    pub(crate) fn within<R>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = read(self);
        self.path.truncate(len);
        result
    }

    /// Reads something of an element of the present key.
    pub(crate) fn within_element<R>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        let result = read(self);
        self.path.truncate(len);
        result
    }

    /// Something is wrong with the present key.
    pub(crate) fn problem(&mut self, span: &Range<usize>, what: impl Into<String>) {
        let key = self.path.clone();
        self.problem_of(&key, span, what);
    }

    /// Something is wrong with the present key, and there is more to say on what to do.
    pub(crate) fn problem_with_help(
        &mut self,
        span: &Range<usize>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let before = self.found.len();
        self.problem(span, what);
        if let Some(found) = self.found.get_mut(before) {
            found.help = Some(help.into());
        }
    }

    /// Something is wrong with a key.
    pub(crate) fn problem_of(&mut self, key: &str, span: &Range<usize>, what: impl Into<String>) {
        if self.found.len() < PROBLEMS_MAX {
            let key = key.chars().take(KEY_CHARS_MAX).map(printable).collect();
            self.found.push(Found { span: span.clone(), key, what: what.into(), help: None });
        } else {
            self.left_out += 1;
        }
    }

    /// Something else stands where `wanted` should.
    pub(crate) fn mismatch(&mut self, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let is = kind(value.get_ref());
        self.problem(&value.span(), format!("here stands {is}, wanted is {wanted}"));
    }

    /// Whether nothing was found wrong with a key or what is in it.
    pub(crate) fn is_sound(&self, key: &str) -> bool {
        self.left_out == 0 && !self.found.iter().any(|found| found.key.starts_with(key))
    }

    /// Keeps what the text of the present key has become, if it held variables.
    pub(crate) fn becomes(&mut self, value: &str) {
        if let Some((_, whole)) = self.written.get_mut(&self.path) {
            value.clone_into(whole);
        }
    }

    /// The text of a key as a message may show it: as it was written where it held variables.
    pub(crate) fn shown(&self, key: &str, value: &impl ToString) -> String {
        self.written.get(key).map_or_else(|| value.to_string(), |(written, _)| written.clone())
    }

    /// The same for an element of the present key.
    pub(crate) fn shown_element(&self, index: usize, value: &str) -> String {
        self.shown(&format!("{}[{index}]", self.path), &value)
    }

    /// Whether nothing was found wrong with the present key or what is in it.
    pub(crate) fn is_sound_here(&self) -> bool {
        self.is_sound(&self.path)
    }

    /// A text, with its variables put in.
    pub(crate) fn text(&mut self, value: &Spanned<DeValue<'_>>, wanted: &str) -> Option<Text> {
        let DeValue::String(written) = value.get_ref() else {
            self.mismatch(value, wanted);
            return None;
        };
        let text = match substitute(written, self.environment) {
            Ok(None) => Text { value: written.to_string(), shown: written.to_string() },
            Ok(Some(whole)) => {
                self.written.insert(self.path.clone(), (written.to_string(), whole.clone()));
                Text { value: whole, shown: written.to_string() }
            }
            Err(why) => {
                self.problem(&value.span(), why);
                return None;
            }
        };
        if text.value.len() > VALUE_BYTES_MAX {
            self.problem(&value.span(), format!("a text may have {VALUE_BYTES_MAX} bytes"));
            return None;
        }
        Some(text)
    }
}

/// What a value is, with its article.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
