//! Values that may be left out, or be switched off.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::pen::Pen;
use crate::reading::Reading;

/// A value that may be left out.
pub(crate) struct Optional<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for Optional<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Option<T>) {
        self.0.read(value, reading, place.insert(T::default()));
    }

    fn write(&self, value: &Option<T>, pen: &mut Pen<'_>) -> bool {
        value.as_ref().is_some_and(|value| self.0.write(value, pen))
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }
}

/// A value, or `false`.
pub(crate) struct OrOff<R>(pub(crate) R);

impl<T: Default, R: Rule<T>> Rule<Option<T>> for OrOff<R> {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Option<T>) {
        match value.get_ref() {
            DeValue::Boolean(false) => *place = None,
            DeValue::String(_) => self.0.read(value, reading, place.insert(T::default())),
            _ => reading.mismatch(value, &self.allowed()),
        }
    }

    fn write(&self, value: &Option<T>, pen: &mut Pen<'_>) -> bool {
        match value {
            Some(value) => self.0.write(value, pen),
            None => {
                pen.plain("false");
                true
            }
        }
    }

    fn allowed(&self) -> String {
        format!("{}, or false", self.0.allowed())
    }
}
