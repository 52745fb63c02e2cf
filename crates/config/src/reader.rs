//! Reads a table of the file into its section, and finds the keys that the section hasn't.

use std::ops::Range;

use toml::de::DeTable;

use crate::fields::{Fields, Present, Visit};
use crate::names::{nearest, or_list, shown};
use crate::not_built::{NotBuilt, not_built};
use crate::reading::{Reading, Written};
use crate::rows::rows;
use crate::rules::Rule;
use crate::sections;

/// Reads a table into `place`, whose values stay where the table has no key.
pub(crate) fn read_table<T: Fields>(
    table: &DeTable<'_>,
    span: Range<usize>,
    place: &mut T,
    reading: &mut Reading<'_>,
) {
    let mut reader = Reader { table, reading, known: Vec::new() };
    place.fields(&mut reader);
    let known = reader.known;
    unknown_keys(table, &known, reading);
    missing_keys::<T>(table, &span, reading);
    place.check(&Present { table, span }, reading);
}

struct Reader<'a, 'r, 'e> {
    table: &'a DeTable<'a>,
    reading: &'r mut Reading<'e>,
    known: Vec<&'static str>,
}

impl Visit for Reader<'_, '_, '_> {
    fn field<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        self.known.push(name);
        if let Some(value) = self.table.get(name) {
            self.reading.within(name, |reading| rule.read(value, reading, place));
        }
    }
}

/// Says of each key that the section hasn't what may be meant.
pub(crate) fn unknown_keys(table: &DeTable<'_>, known: &[&'static str], reading: &mut Reading<'_>) {
    for (key, _) in table.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
        let name = shown(key.get_ref());
        let not_built = not_built(key.get_ref()).filter(|_| sections::home_of(key.get_ref()).is_none());
        reading.within(&name, |reading| match not_built {
            Some(NotBuilt { what, help, .. }) => {
                reading.problem_with_help(&key.span(), format!("unknown key; {what}"), *help);
            }
            None => {
                let meant = meant(key.get_ref(), known);
                reading.problem(&key.span(), format!("unknown key; {meant}"));
            }
        });
    }
}

/// Says of each key that has to be there and isn't what may stand there.
fn missing_keys<T: Fields>(table: &DeTable<'_>, span: &Range<usize>, reading: &mut Reading<'_>) {
    for name in T::REQUIRED.iter().filter(|name| !table.contains_key(**name)) {
        let example = rows(&T::example(), "", &Written::new()).into_iter().find(|row| row.name == *name);
        let example = example.and_then(|row| row.value).unwrap_or_default();
        reading.problem(span, format!("`{name}` is missing, such as {name} = {example}"));
    }
}

fn meant(name: &str, known: &[&'static str]) -> String {
    if let Some(nearest) = nearest(name, known.iter().copied()) {
        return format!("the nearest is `{nearest}`");
    }
    if let Some(elsewhere) = sections::home_of(name) {
        return elsewhere;
    }
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("known here: {}", or_list(&names))
}
