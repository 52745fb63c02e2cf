//! Optional values, arrays, and tables.

use std::collections::BTreeMap;
use std::fmt::Display;

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::context::Context;
use crate::section::{Section, Visitor, read_table};
use crate::toml_writer::{self, TomlWriter};

/// A value that may be absent.
pub(crate) struct Optional<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for Optional<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Option<T>) {
        self.0.read(value, context, place.insert(T::default()));
    }

    fn write(&self, value: &Option<T>, writer: &mut TomlWriter<'_>) -> bool {
        value.as_ref().is_some_and(|value| self.0.write(value, writer))
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }
}

/// An array without duplicates; the rule is that of its elements.
pub(crate) struct List<R>(pub(crate) R);

impl<T: Default + PartialEq, R: Rule<T>> Rule<Vec<T>> for List<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return context.mismatch(value, "an array", &self.allowed());
        };
        let mut read = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            context.within_element(index, |context| {
                let problems = context.found.len() + context.left_out;
                let mut place = T::default();
                self.0.read(element, context, &mut place);
                let is_sound = problems == context.found.len() + context.left_out;
                if is_sound && read.contains(&place) {
                    context.error(&element.span(), "duplicate value");
                }
                read.push(place);
            });
        }
        *place = read;
    }

    fn write(&self, value: &Vec<T>, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain("[");
        for (index, element) in value.iter().enumerate() {
            if index > 0 {
                writer.plain(", ");
            }
            writer.within(&format!("[{index}]"), |writer| self.0.write(element, writer));
        }
        writer.plain("]");
        true
    }

    fn allowed(&self) -> String {
        format!("an array of: {}", self.0.allowed())
    }
}

/// A table whose keys are the operator's: a description, a parser of keys, and the rule of the values. A table adds to an
/// inherited one.
pub(crate) struct Map<K, R>(pub(crate) &'static str, pub(crate) fn(&str) -> Option<K>, pub(crate) R);

impl<K: Ord + Display, V: Default, R: Rule<V>> Rule<BTreeMap<K, V>> for Map<K, R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut BTreeMap<K, V>) {
        let DeValue::Table(table) = value.get_ref() else {
            return context.mismatch(value, "a table", &self.allowed());
        };
        let mut own = BTreeMap::new();
        for (name, value) in table {
            context.within(name.get_ref(), |context| {
                let mut read = V::default();
                self.2.read(value, context, &mut read);
                match self.1(name.get_ref()) {
                    Some(key) => {
                        if own.insert(key, read).is_some() {
                            context.error(&name.span(), "duplicate key");
                        }
                    }
                    None => {
                        let help = format!("allowed: {}", self.0);
                        context.error_with_help(&name.span(), "invalid key", help);
                    }
                }
            });
        }
        place.extend(own);
    }

    fn write(&self, value: &BTreeMap<K, V>, writer: &mut TomlWriter<'_>) -> bool {
        if value.is_empty() {
            writer.plain("{}");
            return true;
        }
        let mut before = "{ ";
        for (key, value) in value {
            let name = key.to_string();
            writer.plain(before);
            writer.plain(&format!("{} = ", toml_writer::key(&name)));
            writer.within(&format!(".{name}"), |writer| self.2.write(value, writer));
            before = ", ";
        }
        writer.plain(" }");
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

/// A table with known keys, written in one line; the text describes it.
pub(crate) struct Inline(pub(crate) &'static str);

impl<T: Section> Rule<T> for Inline {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut T) {
        match value.get_ref() {
            DeValue::Table(table) => read_table(table, value.span(), place, context),
            _ => context.mismatch(value, "a table", self.0),
        }
    }

    fn write(&self, value: &T, writer: &mut TomlWriter<'_>) -> bool {
        let mut inline = InlineWriter { writer, count: 0 };
        value.clone().keys(&mut inline);
        let InlineWriter { writer, count } = inline;
        writer.plain(if count == 0 { "{}" } else { " }" });
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

struct InlineWriter<'p, 'w> {
    writer: &'p mut TomlWriter<'w>,
    count: usize,
}

impl Visitor for InlineWriter<'_, '_> {
    fn key<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        let len = self.writer.text.len();
        self.writer.plain(if self.count == 0 { "{ " } else { ", " });
        self.writer.plain(&format!("{name} = "));
        if self.writer.within(&format!(".{name}"), |writer| rule.write(place, writer)) {
            self.count += 1;
        } else {
            self.writer.text.truncate(len);
        }
    }
}

/// An array of tables, `[[name]]`; each starts as a copy of the value given.
pub(crate) struct Tables<T>(pub(crate) T);

impl<T: Section> Rule<Vec<T>> for Tables<T> {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return context.mismatch(value, "an array of tables", &self.allowed());
        };
        for (index, element) in elements.iter().enumerate() {
            let mut read = self.0.clone();
            context.within_element(index, |context| match element.get_ref() {
                DeValue::Table(table) => read_table(table, element.span(), &mut read, context),
                _ => context.mismatch(element, "a table", &Rule::<Vec<T>>::allowed(self)),
            });
            place.push(read);
        }
    }

    /// Writes nothing: each table has a heading of its own, which the caller writes.
    fn write(&self, _: &Vec<T>, _: &mut TomlWriter<'_>) -> bool {
        false
    }

    fn allowed(&self) -> String {
        "tables with headings in double brackets".to_owned()
    }
}
