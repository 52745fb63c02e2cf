//! Truth values: `true` and `false`.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::pen::Pen;
use crate::reading::Reading;

/// `true` or `false`.
pub(crate) struct Flag;

impl Rule<bool> for Flag {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut bool) {
        match value.get_ref() {
            DeValue::Boolean(flag) => *place = *flag,
            _ => reading.mismatch(value, &self.allowed()),
        }
    }

    fn write(&self, value: &bool, pen: &mut Pen<'_>) -> bool {
        pen.plain(if *value { "true" } else { "false" });
        true
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}
