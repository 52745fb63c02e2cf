//! Values with names: `true` and `false`, choices.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::context::Context;
use crate::names::{nearest, or_list};
use crate::toml_writer::TomlWriter;

/// `true` or `false`.
pub(crate) struct Flag;

impl Rule<bool> for Flag {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut bool) {
        match value.get_ref() {
            DeValue::Boolean(flag) => *place = *flag,
            _ => context.mismatch(value, "a boolean", &self.allowed()),
        }
    }

    fn write(&self, value: &bool, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain(if *value { "true" } else { "false" });
        true
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}

/// An enum whose values have names.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// Every value with its name.
    const ALL: &'static [(&'static str, Self)];

    /// Old names, each with its new name.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];
}

/// The name of one value.
pub(crate) struct Choice;

impl<T: Choices> Rule<T> for Choice {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let Some(text) = context.text(value, &allowed) else { return };
        if let Some((_, choice)) = T::ALL.iter().find(|(name, _)| *name == text.value) {
            *place = *choice;
        } else if let Some((old, new)) = T::RENAMED.iter().find(|(old, _)| *old == text.value) {
            let message = format!("\"{old}\" was renamed to \"{new}\"");
            context.error_with_help(&value.span(), message, format!("allowed: {allowed}"));
        } else {
            let help = match nearest(&text.shown, T::ALL.iter().map(|(name, _)| *name)) {
                Some(nearest) => format!("did you mean \"{nearest}\"? Allowed: {allowed}"),
                None => format!("allowed: {allowed}"),
            };
            context.error_with_help(&value.span(), "unknown value", help);
        }
    }

    fn write(&self, value: &T, writer: &mut TomlWriter<'_>) -> bool {
        let known = T::ALL.iter().find(|(_, choice)| choice == value);
        known.inspect(|(name, _)| writer.quoted(name)).is_some()
    }

    fn allowed(&self) -> String {
        or_list(&T::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>())
    }
}

/// A string, or `false`.
pub(crate) struct OrFalse<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for OrFalse<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Option<T>) {
        match value.get_ref() {
            DeValue::Boolean(false) => *place = None,
            DeValue::String(_) => self.0.read(value, context, place.insert(T::default())),
            _ => context.mismatch(value, "a string or false", &self.allowed()),
        }
    }

    fn write(&self, value: &Option<T>, writer: &mut TomlWriter<'_>) -> bool {
        match value {
            Some(value) => self.0.write(value, writer),
            None => {
                writer.plain("false");
                true
            }
        }
    }

    fn allowed(&self) -> String {
        format!("{}, or false", self.0.allowed())
    }
}
