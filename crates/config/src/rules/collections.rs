//! Optional values, arrays, and tables.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::context::{Context, KeyPath, Value, bare_or_quoted};
use crate::section::{Description, Kind, Rule, Section, Source, Visitor, describe, print_table, rows};
use crate::unknown;

/// A value that may be absent.
pub(crate) struct Optional<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for Optional<R> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Option<T>) {
        self.0.read(value, context, place.insert(T::default()));
    }

    fn write(&self, value: &Option<T>, at: &KeyPath<'_>) -> Option<String> {
        self.0.write(value.as_ref()?, at)
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        self.0.tables(heading, means)
    }
}

/// An array without duplicates; the rule is that of its elements.
pub(crate) struct List<R>(pub(crate) R);

impl<T: Default + PartialEq, R: Rule<T>> Rule<Vec<T>> for List<R> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return context.mismatch(value, "an array", &self.allowed());
        };
        let mut read = Vec::with_capacity(elements.len());
        // Indices of those without errors.
        let mut valid: Vec<usize> = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            context.within_element(index, |context| {
                let problems = context.count();
                let mut place = T::default();
                self.0.read(element, context, &mut place);
                if problems == context.count() {
                    if valid.iter().any(|&earlier| read[earlier] == place) {
                        context.error(&element.span(), "duplicate value");
                    }
                    valid.push(index);
                }
                read.push(place);
            });
        }
        *place = read;
    }

    fn write(&self, value: &Vec<T>, at: &KeyPath<'_>) -> Option<String> {
        let elements = value.iter().enumerate();
        let elements = elements.filter_map(|(index, element)| self.0.write(element, &at.element(index)));
        Some(format!("[{}]", elements.collect::<Vec<_>>().join(", ")))
    }

    fn allowed(&self) -> String {
        format!("an array of: {}", self.0.allowed())
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        self.0.tables(heading, means)
    }
}

/// A table whose keys are the operator's: a description, a parser of keys, and the rule of the values. A table adds to an
/// inherited one.
pub(crate) struct Map<K, R>(pub(crate) &'static str, pub(crate) fn(&str) -> Option<K>, pub(crate) R);

impl<K: Ord + Display, V: Default, R: Rule<V>> Rule<BTreeMap<K, V>> for Map<K, R> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut BTreeMap<K, V>) {
        let DeValue::Table(table) = value.get_ref() else {
            return context.mismatch(value, "a table", &self.allowed());
        };
        let mut own = BTreeMap::new();
        for (name, value) in table {
            context.within(name.get_ref(), |context| {
                let mut read = V::default();
                self.2.read(value, context, &mut read);
                match self.1(name.get_ref()) {
                    None => {
                        let help = format!("allowed: {}", self.0);
                        context.error_with_help(&name.span(), "invalid key", help);
                    }
                    Some(key) => {
                        if own.insert(key, read).is_some() {
                            context.error(&name.span(), "duplicate key");
                        }
                    }
                }
            });
        }
        place.extend(own);
    }

    fn write(&self, value: &BTreeMap<K, V>, at: &KeyPath<'_>) -> Option<String> {
        let lines = value.iter().filter_map(|(name, value)| {
            let name = name.to_string();
            Some(format!("{} = {}", bare_or_quoted(&name), self.2.write(value, &at.key(&name))?))
        });
        Some(inline_table(lines))
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

fn inline_table(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", lines.join(", ")) }
}

/// A table with known keys: with a heading if it can be in the file once, or in one line. The text describes it.
pub(crate) struct Table(pub(crate) Kind, pub(crate) &'static str);

impl<T: Section> Rule<T> for Table {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T) {
        match value.get_ref() {
            DeValue::Table(table) => read_table(table, value.span(), place, context),
            _ => context.mismatch(value, "a table", self.1),
        }
    }

    fn write(&self, value: &T, at: &KeyPath<'_>) -> Option<String> {
        let lines = || rows(value, at).into_iter().map(|row| format!("{} = {}", row.name, row.value));
        (self.0 == Kind::Inline).then(|| inline_table(lines()))
    }

    fn allowed(&self) -> String {
        self.1.to_owned()
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        match self.0 {
            Kind::Inline => {
                describe::<T>(Kind::Inline, heading.rsplit('.').next().unwrap_or(heading), T::MEANS)
            }
            kind => describe::<T>(kind, heading, means),
        }
    }

    fn print(&self, value: &T, heading: &str, at: &KeyPath<'_>, text: &mut String) {
        if self.0 == Kind::Once {
            print_table(value, rows(value, at), Kind::Once, heading, at, text);
        }
    }
}

/// An array of tables, `[[name]]`; each starts as a copy of the value given.
pub(crate) struct Tables<T>(pub(crate) T);

impl<T: Section> Rule<Vec<T>> for Tables<T> {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return context.mismatch(value, "an array of tables", &self.allowed());
        };
        for (index, element) in elements.iter().enumerate() {
            let mut read = self.0.clone();
            context.within_element(index, |context| match element.get_ref() {
                DeValue::Table(table) => read_table(table, element.span(), &mut read, context),
                _ => context.mismatch(element, "a table", &self.allowed()),
            });
            place.push(read);
        }
    }

    fn write(&self, _: &Vec<T>, _: &KeyPath<'_>) -> Option<String> {
        None
    }

    fn allowed(&self) -> String {
        "tables with headings in double brackets".to_owned()
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        describe::<T>(Kind::Repeated, heading, means)
    }

    fn print(&self, value: &Vec<T>, heading: &str, at: &KeyPath<'_>, text: &mut String) {
        for (index, element) in value.iter().enumerate() {
            let at = at.element(index);
            let own = T::own_rows(rows(element, &at), rows(&self.0, &at));
            print_table(element, own, Kind::Repeated, heading, &at, text);
        }
    }
}

/// Reads a table into a section. Keys that aren't written keep their value.
pub(crate) fn read_table<T: Section>(
    table: &DeTable<'_>,
    span: Range<usize>,
    section: &mut T,
    context: &mut Context<'_>,
) {
    let mut reader = Reader { table, context, known: Vec::new() };
    section.keys(&mut reader);
    let known = reader.known;
    for (key, value) in table.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
        unknown::report(key, value, &known, context);
    }
    for name in T::REQUIRED.iter().filter(|name| !table.contains_key(**name)) {
        let example = rows(&T::example(), &KeyPath::default()).into_iter().find(|row| row.name == *name);
        let example = example.map(|row| row.value).unwrap_or_default();
        context.error_with_help(&span, format!("missing key `{name}`"), format!("add `{name} = {example}`"));
    }
    section.check(&Source { table, span }, context);
}

struct Reader<'a, 'c, 'e> {
    table: &'a DeTable<'a>,
    context: &'c mut Context<'e>,
    known: Vec<&'static str>,
}

impl Visitor for Reader<'_, '_, '_> {
    fn key<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        self.known.push(name);
        if let Some(value) = self.table.get(name) {
            self.context.within(name, |context| rule.read(value, context, place));
        }
    }
}
