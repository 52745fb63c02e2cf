//! Tables with keys of their own: one, or a list of them.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::fields::{Fields, Visit};
use crate::pen::Pen;
use crate::reader::read_table;
use crate::reading::Reading;

/// One table, written in one line; the name is what it is called.
pub(crate) struct Inline(pub(crate) &'static str);

impl<T: Fields> Rule<T> for Inline {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut T) {
        match value.get_ref() {
            DeValue::Table(table) => read_table(table, value.span(), place, reading),
            _ => reading.mismatch(value, self.0),
        }
    }

    fn write(&self, value: &T, pen: &mut Pen<'_>) -> bool {
        let mut writer = InlineWriter { pen, count: 0 };
        value.clone().fields(&mut writer);
        let InlineWriter { pen, count } = writer;
        pen.plain(if count == 0 { "{}" } else { " }" });
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

struct InlineWriter<'p, 'w> {
    pen: &'p mut Pen<'w>,
    count: usize,
}

impl Visit for InlineWriter<'_, '_> {
    fn field<T>(&mut self, name: &'static str, _: &'static str, rule: impl Rule<T>, place: &mut T) {
        let len = self.pen.text.len();
        self.pen.plain(if self.count == 0 { "{ " } else { ", " });
        self.pen.plain(&format!("{name} = "));
        let mut stands = false;
        self.pen.within(name, |pen| stands = rule.write(place, pen));
        if stands {
            self.count += 1;
        } else {
            self.pen.text.truncate(len);
        }
    }
}

/// A list of tables, each begun from a copy of the value given: `[[name]]`.
pub(crate) struct Tables<T>(pub(crate) T);

impl<T: Fields> Rule<Vec<T>> for Tables<T> {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return reading.mismatch(value, &self.allowed());
        };
        for (index, element) in elements.iter().enumerate() {
            let mut read = self.0.clone();
            reading.within_element(index, |reading| match element.get_ref() {
                DeValue::Table(table) => read_table(table, element.span(), &mut read, reading),
                _ => reading.mismatch(element, "a table"),
            });
            place.push(read);
        }
    }

    /// They are written each under a heading of its own, by who knows the heading.
    fn write(&self, _: &Vec<T>, _: &mut Pen<'_>) -> bool {
        false
    }

    fn allowed(&self) -> String {
        "tables in double brackets".to_owned()
    }
}
