//! One name out of a few.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::names::{nearest, or_list, shown};
use crate::pen::Pen;
use crate::reading::Reading;

/// What has a name for each of its values.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// Every value with its name.
    const ALL: &'static [(&'static str, Self)];

    /// Old names of values, each with its new name.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];
}

/// The name of one value.
pub(crate) struct Choice;

impl<T: Choices> Rule<T> for Choice {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut T) {
        let allowed = Rule::<T>::allowed(self);
        let Some(text) = reading.text(value, &allowed) else { return };
        match T::ALL.iter().find(|(name, _)| *name == text.value) {
            Some((_, choice)) => *place = *choice,
            None => {
                let names = T::ALL.iter().map(|(name, _)| *name);
                let renamed = T::RENAMED.iter().find(|(old, _)| *old == text.value);
                let meant = match renamed {
                    Some((_, new)) => format!("; it is called \"{new}\" now"),
                    None => nearest(&text.shown, names)
                        .map_or(String::new(), |nearest| format!("; the nearest is \"{nearest}\"")),
                };
                let given = shown(&text.shown);
                reading.problem(&value.span(), format!("{given:?} is none of {allowed}{meant}"));
            }
        }
    }

    fn write(&self, value: &T, pen: &mut Pen<'_>) -> bool {
        match T::ALL.iter().find(|(_, choice)| choice == value) {
            Some((name, _)) => pen.quoted(name),
            None => return false,
        }
        true
    }

    fn allowed(&self) -> String {
        or_list(&T::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>())
    }
}
