//! A table of the configuration: one list of its keys, used to read it, to print it and to document it.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::context::{Context, Written};
use crate::diagnostics::shown;
use crate::names::nearest;
use crate::rules::Rule;
use crate::sections::{home_of, renamed};
use crate::toml_writer::TomlWriter;
use crate::unsupported::unsupported;

/// A table with known keys.
pub(crate) trait Section: Default + Clone {
    /// Keys without a default.
    const REQUIRED: &'static [&'static str] = &[];

    /// Visits every key.
    fn keys(&mut self, visitor: &mut impl Visitor);

    /// Checks keys against each other once all of them are read, and settles those that depend on others.
    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        let _ = (table, context);
    }

    /// Returns a value that shows keys whose default is nothing.
    fn example() -> Self {
        Self::default()
    }
}

/// Visits the keys of a section.
pub(crate) trait Visitor {
    /// Visits a key with its description, its rule and its place in the section.
    fn key<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T);
}

/// Defines a section from its keys: `field as "key": type = default, rule, "description";`.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $section:ident {
            $($field:ident $(as $name:literal)?: $type:ty = $default:expr, $rule:expr, $means:literal;)*
        }
        $($more:tt)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $section {
            $(#[doc = $means] pub $field: $type,)*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        impl crate::section::Section for $section {
            fn keys(&mut self, visitor: &mut impl crate::section::Visitor) {
                $(visitor.key(section!(@name $field $($name)?), $means, $rule, &mut self.$field);)*
            }

            $($more)*
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(crate) use section;

/// A table as written in the file.
pub(crate) struct Table<'a> {
    pub(crate) table: &'a DeTable<'a>,
    pub(crate) span: Range<usize>,
}

impl Table<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Reports an error at a key; at the table if the key isn't written.
    pub(crate) fn error(&self, context: &mut Context<'_>, name: &str, message: &str, help: &str) {
        let span = self.table.get_key_value(name).map_or(self.span.clone(), |(key, _)| key.span());
        context.within(name, |context| context.error_with_help(&span, message, help));
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
        unknown_key(key, value, &known, context);
    }
    for name in T::REQUIRED.iter().filter(|name| !table.contains_key(**name)) {
        let example = rows(&T::example(), "", &Written::new()).into_iter().find(|row| row.name == *name);
        let example = example.and_then(|row| row.value).unwrap_or_default();
        context.error_with_help(&span, format!("missing key `{name}`"), format!("add `{name} = {example}`"));
    }
    section.check(&Table { table, span }, context);
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

/// Reports an unknown key with the key that is probably meant.
fn unknown_key(
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    known: &[&'static str],
    context: &mut Context<'_>,
) {
    let name = key.get_ref().as_ref();
    let shown = shown(name);
    let home = home_of(name);
    let (message, help) = if let Some(renamed) = renamed(name).filter(|key| known.contains(&key.new)) {
        (format!("`{}` was renamed to `{}`", renamed.old, renamed.new), renamed.help(value.get_ref()))
    } else if let (Some(feature), None) = (unsupported(name), &home) {
        (format!("unknown key `{shown}`: {}", feature.what), feature.help.to_owned())
    } else {
        let help = match (nearest(name, known.iter().copied()), home) {
            (Some(nearest), _) => format!("a key with a similar name exists: `{nearest}`"),
            (None, Some(home)) => home,
            (None, None) => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("known keys: {}", known.join(", "))
            }
        };
        (format!("unknown key `{shown}`"), help)
    };
    context.within(&shown, |context| context.error_with_help(&key.span(), message, help));
}

/// Returns the names of a section's keys.
pub(crate) fn names<T: Section>() -> Vec<&'static str> {
    rows(&T::default(), "", &Written::new()).into_iter().map(|row| row.name).collect()
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) means: &'static str,
    pub(crate) allowed: String,
    /// The value as TOML with variables substituted; `None` if the key is absent.
    pub(crate) value: Option<String>,
    /// The value as TOML with variables as written.
    pub(crate) shown: Option<String>,
}

/// Returns the rows of a section. `path` is the section's key.
pub(crate) fn rows<T: Section>(section: &T, path: &str, written: &Written) -> Vec<Row> {
    let mut lister = Lister { path, written, rows: Vec::new() };
    // Reading and printing share one list of keys, which needs a mutable section.
    section.clone().keys(&mut lister);
    lister.rows
}

struct Lister<'a> {
    path: &'a str,
    written: &'a Written,
    rows: Vec<Row>,
}

impl Visitor for Lister<'_> {
    fn key<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T) {
        let write = |written| {
            let mut writer = TomlWriter::new(written, format!("{}.{name}", self.path));
            rule.write(place, &mut writer).then_some(writer.text)
        };
        let (value, shown) = (write(None), write(Some(self.written)));
        self.rows.push(Row { name, means, allowed: rule.allowed(), value, shown });
    }
}
