//! Flags, strings, and choices.

use std::path::Path;

use toml::de::DeValue;

use crate::context::{Context, KeyPath, Value};
use crate::section::Rule;
use crate::unknown::{nearest, or_list};

/// `true` or `false`.
pub(crate) struct Flag;

impl Rule<bool> for Flag {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut bool) {
        match value.get_ref() {
            DeValue::Boolean(flag) => *place = *flag,
            _ => context.mismatch(value, "a boolean", &self.allowed()),
        }
    }

    fn write(&self, value: &bool, _: &KeyPath<'_>) -> Option<String> {
        Some(value.to_string())
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}

/// A string of some form.
pub(crate) struct Text<T> {
    pub(crate) allowed: &'static str,
    /// Parses a string with its variables substituted, or returns a message. Paths are relative to the folder.
    pub(crate) parse: fn(&str, &Path) -> Result<T, String>,
    pub(crate) format: fn(&T) -> String,
    /// The help for invalid strings. Empty: the allowed ones.
    pub(crate) help: &'static str,
}

/// Any string; the text describes it.
pub(crate) const fn text(allowed: &'static str) -> Text<String> {
    Text { allowed, parse: |text, _| Ok(text.to_owned()), format: String::clone, help: "" }
}

impl<T> Rule<T> for Text<T> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T) {
        let Some(text) = context.text(value, self.allowed) else { return };
        match (self.parse)(&text, context.base) {
            Ok(parsed) => {
                context.becomes(&(self.format)(&parsed));
                *place = parsed;
            }
            Err(message) if self.help.is_empty() => {
                context.error_with_help(&value.span(), message, format!("allowed: {}", self.allowed));
            }
            Err(message) => context.error_with_help(&value.span(), message, self.help),
        }
    }

    fn write(&self, value: &T, at: &KeyPath<'_>) -> Option<String> {
        Some(at.quoted(&(self.format)(value)))
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }
}

/// A string, or `false`.
pub(crate) struct OrFalse<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for OrFalse<R> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Option<T>) {
        match value.get_ref() {
            DeValue::Boolean(false) => *place = None,
            DeValue::String(_) => self.0.read(value, context, place.insert(T::default())),
            _ => context.mismatch(value, "a string or false", &self.allowed()),
        }
    }

    fn write(&self, value: &Option<T>, at: &KeyPath<'_>) -> Option<String> {
        value.as_ref().map_or_else(|| Some("false".to_owned()), |value| self.0.write(value, at))
    }

    fn allowed(&self) -> String {
        format!("{}, or false", self.0.allowed())
    }
}

/// An enum whose values have names.
pub trait Choices: Copy + PartialEq + 'static {
    /// Every value with its name and description.
    const ALL: &'static [(&'static str, Self, &'static str)];

    /// Returns the name.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value, _)| *value == self).map_or("", |(name, ..)| name)
    }
}

/// Defines an enum from its values: `Variant "name": "description";`.
macro_rules! choices {
    ($(#[$doc:meta])* $choice:ident { $($value:ident $name:literal: $means:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $choice {
            $(#[doc = $means] $value,)*
        }

        impl crate::rules::strings::Choices for $choice {
            const ALL: &'static [(&'static str, Self, &'static str)] = &[$(($name, Self::$value, $means)),*];
        }
    };
}
pub(crate) use choices;

/// The name of a choice. The list has old names, each with its new one.
pub(crate) struct Choice(pub(crate) &'static [(&'static str, &'static str)]);

impl<T: Choices> Rule<T> for Choice {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let Some(text) = context.text(value, &allowed) else { return };
        if let Some((_, choice, _)) = T::ALL.iter().find(|(name, ..)| *name == text) {
            *place = *choice;
        } else if let Some((old, new)) = self.0.iter().find(|(old, _)| *old == text) {
            let message = format!("\"{old}\" was renamed to \"{new}\"");
            context.error_with_help(&value.span(), message, format!("allowed: {allowed}"));
        } else {
            // The text as written: a variable may hold a secret.
            let written = value.get_ref().as_str().unwrap_or_default();
            let help = match nearest(written, T::ALL.iter().map(|(name, ..)| *name)) {
                Some(nearest) => format!("did you mean \"{nearest}\"? Allowed: {allowed}"),
                None => format!("allowed: {allowed}"),
            };
            context.error_with_help(&value.span(), "unknown value", help);
        }
    }

    fn write(&self, value: &T, at: &KeyPath<'_>) -> Option<String> {
        Some(at.quoted(value.name()))
    }

    fn allowed(&self) -> String {
        or_list(&T::ALL.iter().map(|(name, ..)| format!("\"{name}\"")).collect::<Vec<_>>())
    }
}
