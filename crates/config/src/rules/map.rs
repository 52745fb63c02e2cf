//! Tables whose keys are the operator's own: extensions, statuses, names of fields.

use std::collections::BTreeMap;
use std::fmt::Display;

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::names::shown;
use crate::pen::{self, Pen};
use crate::reading::Reading;

/// A table: what it is called, what makes a key of a name, and the rule of each value. It adds to what is there.
pub(crate) struct Map<K, R>(pub(crate) &'static str, pub(crate) fn(&str) -> Result<K, String>, pub(crate) R);

impl<K: Ord + Display, V: Default, R: Rule<V>> Rule<BTreeMap<K, V>> for Map<K, R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut BTreeMap<K, V>) {
        let DeValue::Table(table) = value.get_ref() else {
            return reading.mismatch(value, &self.allowed());
        };
        let mut own = BTreeMap::new();
        for (name, value) in table {
            reading.within(name.get_ref(), |reading| {
                let mut read = V::default();
                self.2.read(value, reading, &mut read);
                match self.1(name.get_ref()) {
                    Ok(key) => {
                        if own.insert(key, read).is_some() {
                            reading.problem(&name.span(), "this stands in the table twice");
                        }
                    }
                    Err(why) => {
                        reading.problem(&name.span(), format!("{:?} {why}", shown(name.get_ref())));
                    }
                }
            });
        }
        place.extend(own);
    }

    fn write(&self, value: &BTreeMap<K, V>, pen: &mut Pen<'_>) -> bool {
        if value.is_empty() {
            pen.plain("{}");
            return true;
        }
        let mut before = "{ ";
        for (key, value) in value {
            let name = key.to_string();
            pen.plain(before);
            pen.plain(&format!("{} = ", pen::key(&name)));
            pen.within(&name, |pen| {
                self.2.write(value, pen);
            });
            before = ", ";
        }
        pen.plain(" }");
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}
