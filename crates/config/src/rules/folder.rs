//! Folders, beginning in that of the configuration.

use std::path::{PathBuf, absolute};

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::pen::Pen;
use crate::reading::Reading;

/// A folder: absolute, or relative to the one that the file lies in.
pub(crate) struct Folder;

impl Rule<PathBuf> for Folder {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut PathBuf) {
        let Some(text) = reading.text(value, &self.allowed()) else { return };
        if text.value.is_empty() || text.value.contains('\0') {
            return reading.problem(&value.span(), "this names no folder; the configuration's own is \".\"");
        }
        let joined = reading.base.join(&text.value);
        *place = absolute(&joined).unwrap_or(joined);
        reading.becomes(&place.to_string_lossy());
    }

    /// A name that is no UTF-8 can't be written as it is.
    fn write(&self, value: &PathBuf, pen: &mut Pen<'_>) -> bool {
        pen.quoted(&value.to_string_lossy());
        true
    }

    fn allowed(&self) -> String {
        "a folder".to_owned()
    }
}
