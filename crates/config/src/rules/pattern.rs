//! Paths of a site: exact, or one with all beneath it.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::checks::{parameter, pattern};
use crate::names::shown;
use crate::pen::Pen;
use crate::reading::Reading;
use crate::sections::route::Pattern;

/// `/exact` or `/prefix/*`.
pub(crate) struct PathPattern;

impl Rule<Pattern> for PathPattern {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Pattern) {
        let Some(text) = reading.text(value, &self.allowed()) else { return };
        if let Some(all) = parameter(&text.value) {
            let what = format!("{:?} has a parameter, which paths here don't have", shown(&text.shown));
            let help = match text.value == text.shown {
                true => format!("{all:?} is for all beneath it"),
                false => "a path that ends with /* is for all beneath it".to_owned(),
            };
            return reading.problem_with_help(&value.span(), what, help);
        }
        match pattern(&text.value) {
            Ok(pattern) => {
                *place = pattern;
                reading.becomes(&place.to_string());
            }
            Err(why) => reading.problem(&value.span(), format!("{:?} {why}", shown(&text.shown))),
        }
    }

    fn write(&self, value: &Pattern, pen: &mut Pen<'_>) -> bool {
        pen.quoted(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        "a path, such as \"/about\", or one with all beneath it, such as \"/assets/*\"".to_owned()
    }
}
