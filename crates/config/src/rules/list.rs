//! Lists of values of one kind, none of them twice.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::pen::Pen;
use crate::reading::Reading;

/// A list; the rule is that of each element.
pub(crate) struct List<R>(pub(crate) R);

impl<T: Default + PartialEq, R: Rule<T>> Rule<Vec<T>> for List<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Vec<T>) {
        let DeValue::Array(elements) = value.get_ref() else {
            return reading.mismatch(value, &self.allowed());
        };
        let mut read = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            reading.within_element(index, |reading| {
                let problems = reading.found.len() + reading.left_out;
                let mut place = T::default();
                self.0.read(element, reading, &mut place);
                let is_sound = problems == reading.found.len() + reading.left_out;
                if is_sound && read.contains(&place) {
                    reading.problem(&element.span(), "this stands in the list twice");
                }
                read.push(place);
            });
        }
        *place = read;
    }

    fn write(&self, value: &Vec<T>, pen: &mut Pen<'_>) -> bool {
        pen.plain("[");
        for (index, element) in value.iter().enumerate() {
            if index > 0 {
                pen.plain(", ");
            }
            pen.within_element(index, |pen| {
                self.0.write(element, pen);
            });
        }
        pen.plain("]");
        true
    }

    fn allowed(&self) -> String {
        format!("a list, each {}", self.0.allowed())
    }
}
