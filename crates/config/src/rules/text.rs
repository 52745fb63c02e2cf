//! Texts that a check admits, and modes of files.

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::names::shown;
use crate::pen::Pen;
use crate::reading::Reading;

/// A text, what it is called, and what admits it and gives it its one form: the error is the end of a sentence that begins with the text.
pub(crate) struct Text(pub(crate) &'static str, pub(crate) fn(&str) -> Result<String, String>);

impl Rule<String> for Text {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut String) {
        let Some(text) = reading.text(value, self.0) else { return };
        match self.1(&text.value) {
            Ok(admitted) => {
                *place = admitted;
                reading.becomes(place);
            }
            Err(why) => reading.problem(&value.span(), format!("{:?} {why}", shown(&text.shown))),
        }
    }

    fn write(&self, value: &String, pen: &mut Pen<'_>) -> bool {
        pen.quoted(value);
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

/// The mode bits of a file, in octal, as a text.
pub(crate) struct Mode;

/// The bits that a mode may have.
const MODE_MAX: u32 = 0o777;

impl Rule<u32> for Mode {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut u32) {
        let Some(text) = reading.text(value, &self.allowed()) else { return };
        let is_octal = text.value.len() <= 4 && text.value.bytes().all(|byte| byte.is_ascii_digit());
        match u32::from_str_radix(&text.value, 8).ok().filter(|&mode| is_octal && mode <= MODE_MAX) {
            Some(mode) => {
                *place = mode;
                reading.becomes(&format!("{mode:04o}"));
            }
            None => {
                let given = shown(&text.shown);
                reading.problem(&value.span(), format!("{given:?} is none; wanted is {}", self.allowed()));
            }
        }
    }

    fn write(&self, value: &u32, pen: &mut Pen<'_>) -> bool {
        pen.quoted(&format!("{value:04o}"));
        true
    }

    fn allowed(&self) -> String {
        "a mode in octal, such as \"0660\"".to_owned()
    }
}
