//! A table of the configuration: one list of its keys, used to read it, to print it and to document it.

use std::ops::Range;

use toml::de::DeTable;

use crate::context::{Context, KeyPath, Value};

/// A table with known keys.
pub(crate) trait Section: Default + Clone {
    /// Description of the table where it is the value of a key.
    const MEANS: &'static str = "";

    /// Keys without a default.
    const REQUIRED: &'static [&'static str] = &[];

    /// Visits every key.
    fn keys(&mut self, visitor: &mut impl Visitor);

    /// Checks keys against each other once all of them are read, and settles those that depend on others.
    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        let _ = (source, context);
    }

    /// Returns a value that shows keys whose default is nothing.
    fn example() -> Self {
        Self::default()
    }

    /// Returns the rows to print of a table that started as a copy of another.
    fn own_rows(rows: Vec<Row>, inherited: Vec<Row>) -> Vec<Row> {
        let _ = inherited;
        rows
    }
}

/// Reads and writes values of one kind.
pub(crate) trait Rule<T> {
    /// Reads a value, or reports an error and keeps the previous value.
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut T);

    /// Formats a value as TOML; `None` if the key is absent, or a table with a heading.
    fn write(&self, value: &T, at: &KeyPath<'_>) -> Option<String>;

    /// Describes the allowed values.
    fn allowed(&self) -> String;

    /// Describes the table that a value is, or that its elements are, and the tables within.
    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        let _ = (heading, means);
        Vec::new()
    }

    /// Prints a table with a heading, or several.
    fn print(&self, value: &T, heading: &str, at: &KeyPath<'_>, text: &mut String) {
        let _ = (value, heading, at, text);
    }
}

/// Visits the keys of a section.
pub(crate) trait Visitor {
    /// Visits a key with its description, its rule and its place in the section.
    fn key<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T);
}

/// Defines a section from its keys: `field as "key": type = default, rule, "description";`. A field that isn't a key is in brackets
/// after the name.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $section:ident $([$other:ident: $other_type:ty])? {
            $($field:ident $(as $name:literal)?: $type:ty = $default:expr, $rule:expr, $means:literal;)*
        }
        $($more:tt)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $section {
            $(#[doc = $means] pub $field: $type,)*
            $(pub(crate) $other: $other_type,)?
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default,)* $($other: <$other_type>::default())? }
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
pub(crate) struct Source<'a> {
    pub(crate) table: &'a DeTable<'a>,
    pub(crate) span: Range<usize>,
}

impl Source<'_> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Reports an error at a key; at the table if the key isn't written.
    pub(crate) fn error(&self, context: &mut Context<'_>, name: &str, message: &str, help: &str) {
        let span = self.table.get_key_value(name).map_or(self.span.clone(), |(key, _)| key.span());
        context.within(name, |context| context.error_with_help(&span, message, help));
    }
}

/// A key that is present, and its value as TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// Returns the rows of a section at a key, without tables that have a heading.
pub(crate) fn rows<T: Section>(section: &T, at: &KeyPath<'_>) -> Vec<Row> {
    let mut lister = Lister { at, rows: Vec::new() };
    // Reading and printing share one list of keys, which needs a mutable section.
    section.clone().keys(&mut lister);
    lister.rows
}

struct Lister<'a> {
    at: &'a KeyPath<'a>,
    rows: Vec<Row>,
}

impl Visitor for Lister<'_> {
    fn key<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        self.rows.extend(rule.write(place, &self.at.key(name)).map(|value| Row { name, value }));
    }
}

/// How often a table can be in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Once,
    /// Any number of times; its values are examples.
    Repeated,
    /// As a value of a key of other tables.
    Inline,
}

impl Kind {
    /// Formats a heading.
    pub(crate) fn heading(self, name: &str) -> String {
        match self {
            Self::Once => format!("[{name}]"),
            Self::Repeated => format!("[[{name}]]"),
            Self::Inline => name.to_owned(),
        }
    }
}

/// Prints a table and those within it.
pub(crate) fn print_table<T: Section>(
    table: &T,
    rows: Vec<Row>,
    kind: Kind,
    heading: &str,
    at: &KeyPath<'_>,
    text: &mut String,
) {
    let before = if text.is_empty() { "" } else { "\n" };
    text.push_str(&format!("{before}{}\n", kind.heading(heading)));
    for Row { name, value } in rows {
        text.push_str(&format!("{name} = {value}\n"));
    }
    print_tables(table, heading, at, text);
}

/// Prints the tables within a table that have headings.
pub(crate) fn print_tables<T: Section>(table: &T, heading: &str, at: &KeyPath<'_>, text: &mut String) {
    table.clone().keys(&mut Printer { heading, at, text });
}

struct Printer<'a> {
    heading: &'a str,
    at: &'a KeyPath<'a>,
    text: &'a mut String,
}

impl Visitor for Printer<'_> {
    fn key<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        rule.print(place, &within(self.heading, name), &self.at.key(name), self.text);
    }
}

/// Returns the heading of a table within another.
fn within(heading: &str, name: &str) -> String {
    if heading.is_empty() { name.to_owned() } else { format!("{heading}.{name}") }
}

/// The documentation of one table.
pub(crate) struct Description {
    pub(crate) kind: Kind,
    pub(crate) heading: String,
    pub(crate) means: &'static str,
    pub(crate) keys: Vec<Key>,
}

/// The documentation of one key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) means: &'static str,
    pub(crate) allowed: String,
    pub(crate) is_required: bool,
    /// The value is a table with a heading.
    pub(crate) has_heading: bool,
    pub(crate) default: Option<String>,
    pub(crate) example: Option<String>,
}

/// Describes a table and those within it. Keys that a table shares with the one that it is in are left out.
pub(crate) fn describe<T: Section>(kind: Kind, heading: &str, means: &'static str) -> Vec<Description> {
    let mut describer = Describer { heading, keys: Vec::new(), tables: Vec::new() };
    T::default().keys(&mut describer);
    let Describer { mut keys, mut tables, .. } = describer;
    let mut examples = rows(&T::example(), &KeyPath::default());
    for key in &mut keys {
        key.is_required = T::REQUIRED.contains(&key.name);
        key.default = key.default.take().filter(|_| !key.is_required);
        let example = examples.iter().position(|row| row.name == key.name);
        key.example = example.map(|at| examples.swap_remove(at).value);
    }
    for table in &mut tables {
        let is_shared = |of: &Key| keys.iter().any(|key| (key.name, key.means) == (of.name, of.means));
        table.keys.retain(|key| !is_shared(key));
    }
    tables.insert(0, Description { kind, heading: heading.to_owned(), means, keys });
    tables
}

struct Describer<'a> {
    heading: &'a str,
    keys: Vec<Key>,
    tables: Vec<Description>,
}

impl Visitor for Describer<'_> {
    fn key<T>(&mut self, name: &'static str, means: &'static str, rule: impl Rule<T>, place: &mut T) {
        let tables = rule.tables(&within(self.heading, name), means);
        self.keys.push(Key {
            name,
            means,
            allowed: rule.allowed(),
            is_required: false,
            has_heading: tables.first().is_some_and(|table| table.kind != Kind::Inline),
            default: rule.write(place, &KeyPath::default()),
            example: None,
        });
        self.tables.extend(tables);
    }
}
