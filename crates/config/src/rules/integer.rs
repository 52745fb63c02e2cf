//! Whole numbers within bounds, and out of a list.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use super::Rule;
use crate::names::or_list;
use crate::pen::Pen;
use crate::reading::Reading;

/// A whole number from the first to the last.
pub(crate) struct Integer(pub(crate) RangeInclusive<u64>);

impl<T: TryFrom<u64> + Display> Rule<T> for Integer {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let DeValue::Integer(number) = value.get_ref() else {
            return reading.mismatch(value, &format!("a whole number, {allowed}"));
        };
        let number = parsed(number).filter(|number| self.0.contains(number));
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => *place = number,
            None => reading.problem(&value.span(), format!("out of range; allowed is {allowed}")),
        }
    }

    fn write(&self, value: &T, pen: &mut Pen<'_>) -> bool {
        pen.plain(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        format!("{} to {}", self.0.start(), self.0.end())
    }
}

/// One number of a list.
pub(crate) struct OneOf(pub(crate) &'static [u16]);

impl Rule<u16> for OneOf {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut u16) {
        let DeValue::Integer(number) = value.get_ref() else {
            return reading.mismatch(value, &self.allowed());
        };
        match parsed(number).and_then(|number| self.0.iter().find(|&&one| u64::from(one) == number)) {
            Some(&number) => *place = number,
            None => reading.problem(&value.span(), format!("allowed is {}", self.allowed())),
        }
    }

    fn write(&self, value: &u16, pen: &mut Pen<'_>) -> bool {
        pen.plain(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        or_list(&self.0.iter().map(u16::to_string).collect::<Vec<_>>())
    }
}

fn parsed(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}
