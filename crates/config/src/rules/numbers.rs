//! Rules for integers: within a range, or out of a list.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use super::Rule;
use crate::context::Context;
use crate::names::or_list;
use crate::toml_writer::TomlWriter;

/// An integer within a range.
pub(crate) struct Integer(pub(crate) RangeInclusive<u64>);

impl<T: TryFrom<u64> + Display> Rule<T> for Integer {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let DeValue::Integer(number) = value.get_ref() else {
            return context.mismatch(value, "an integer", &allowed);
        };
        let number = parsed(number).filter(|number| self.0.contains(number));
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => *place = number,
            None => out_of_range(value, context, &allowed),
        }
    }

    fn write(&self, value: &T, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        format!("{} to {}", self.0.start(), self.0.end())
    }
}

/// One integer of a list.
pub(crate) struct OneOf(pub(crate) &'static [u16]);

impl Rule<u16> for OneOf {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut u16) {
        let DeValue::Integer(number) = value.get_ref() else {
            return context.mismatch(value, "an integer", &self.allowed());
        };
        match parsed(number).and_then(|number| self.0.iter().find(|&&one| u64::from(one) == number)) {
            Some(&number) => *place = number,
            None => context.error_with_help(
                &value.span(),
                "unsupported value",
                format!("allowed: {}", self.allowed()),
            ),
        }
    }

    fn write(&self, value: &u16, writer: &mut TomlWriter<'_>) -> bool {
        writer.plain(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        or_list(&self.0.iter().map(u16::to_string).collect::<Vec<_>>())
    }
}

/// Parses an integer in any notation of TOML.
pub(super) fn parsed(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

pub(super) fn out_of_range(value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, allowed: &str) {
    context.error_with_help(&value.span(), "value is out of range", format!("allowed: {allowed}"));
}
