//! Rules for strings: texts, media types, modes, folders, addresses.

use std::net::SocketAddr;
use std::path::{PathBuf, absolute};

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::context::Context;
use crate::sections::listen::Address;
use crate::toml_writer::TomlWriter;

/// A string; the text describes it.
pub(crate) struct Text(pub(crate) &'static str);

impl Rule<String> for Text {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut String) {
        if let Some(text) = context.text(value, self.0) {
            *place = text.value;
        }
    }

    fn write(&self, value: &String, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(value);
        true
    }

    fn allowed(&self) -> String {
        self.0.to_owned()
    }
}

/// A media type with parameters (RFC 9110 section 8.3.1), or a range of them without (`image/*`).
pub(crate) enum MediaType {
    WithParameters,
    Range,
}

impl Rule<String> for MediaType {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut String) {
        let Some(text) = context.text(value, &self.allowed()) else { return };
        let is_valid = match self {
            Self::WithParameters => {
                let essence = text.value.split(';').next().unwrap_or_default().trim_end();
                let is_printable = text.value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
                is_media_type(essence, false) && is_printable && text.value.trim() == text.value
            }
            Self::Range => is_media_type(&text.value, true),
        };
        match is_valid {
            true => *place = text.value,
            false => {
                let help = format!("allowed: {}", self.allowed());
                context.error_with_help(&value.span(), "invalid media type", help);
            }
        }
    }

    fn write(&self, value: &String, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(value);
        true
    }

    fn allowed(&self) -> String {
        match self {
            Self::WithParameters => "a media type, such as \"text/plain; charset=utf-8\"",
            Self::Range => "a media type without parameters, such as \"text/html\" or \"image/*\"",
        }
        .to_owned()
    }
}

/// Returns whether a text is `type/subtype`, or `type/*` if `is_range`.
fn is_media_type(text: &str, is_range: bool) -> bool {
    let is_token = |part: &str| {
        let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !part.is_empty() && part.bytes().all(is_token_byte)
    };
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_token(kind) && kind != "*" && is_token(subtype) && (is_range || subtype != "*")
    })
}

/// The permission bits of a file as an octal string.
pub(crate) struct Mode;

const MODE_MAX: u32 = 0o777;

impl Rule<u32> for Mode {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut u32) {
        let Some(text) = context.text(value, &self.allowed()) else { return };
        let is_octal = text.value.len() <= 4 && text.value.bytes().all(|byte| byte.is_ascii_digit());
        match u32::from_str_radix(&text.value, 8).ok().filter(|&mode| is_octal && mode <= MODE_MAX) {
            Some(mode) => {
                *place = mode;
                context.becomes(&format!("{mode:04o}"));
            }
            None => {
                let help = format!("allowed: {}", self.allowed());
                context.error_with_help(&value.span(), "invalid mode", help);
            }
        }
    }

    fn write(&self, value: &u32, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(&format!("{value:04o}"));
        true
    }

    fn allowed(&self) -> String {
        "an octal mode, such as \"0660\"".to_owned()
    }
}

/// A folder, absolute or relative to that of the configuration file.
pub(crate) struct Folder;

impl Rule<PathBuf> for Folder {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut PathBuf) {
        let Some(text) = context.text(value, &self.allowed()) else { return };
        if text.value.is_empty() || text.value.contains('\0') {
            let help = "the folder of the configuration file is \".\"";
            return context.error_with_help(&value.span(), "invalid path of a folder", help);
        }
        let joined = context.base.join(&text.value);
        *place = absolute(&joined).unwrap_or(joined);
        context.becomes(&place.to_string_lossy());
    }

    /// Writes a path. One that isn't UTF-8 is written lossily.
    fn write(&self, value: &PathBuf, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(&value.to_string_lossy());
        true
    }

    fn allowed(&self) -> String {
        "a folder, such as \"./public\"".to_owned()
    }
}

/// `ADDRESS:PORT` or `unix:PATH`.
pub(crate) struct ListenAddress;

const UNIX: &str = "unix:";

/// Bytes of a socket's path: `sun_path` has 108 bytes on Linux and 104 elsewhere, including the terminating NUL.
const UNIX_PATH_BYTES_MAX: usize = 103;

impl Rule<Address> for ListenAddress {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Address) {
        let Some(text) = context.text(value, &self.allowed()) else { return };
        match parse_address(&text.value, context) {
            Ok(address) => {
                *place = address;
                context.becomes(&place.to_string());
            }
            Err(message) => {
                context.error_with_help(&value.span(), message, format!("allowed: {}", self.allowed()));
            }
        }
    }

    fn write(&self, value: &Address, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        "an IP address with a port, or a socket: \"127.0.0.1:8080\", \"[::]:80\", \"unix:/run/shearwater.sock\""
            .to_owned()
    }
}

fn parse_address(text: &str, context: &Context<'_>) -> Result<Address, String> {
    let Some(path) = text.strip_prefix(UNIX) else {
        return text.parse::<SocketAddr>().map(Address::Tcp).map_err(|_| "invalid address".to_owned());
    };
    let joined = context.base.join(path);
    let whole = absolute(&joined).unwrap_or(joined);
    if path.is_empty() || path.contains('\0') {
        Err("missing path after `unix:`".to_owned())
    } else if whole.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        Err(format!("absolute path of the socket is longer than {UNIX_PATH_BYTES_MAX} bytes"))
    } else {
        Ok(Address::Unix(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::is_media_type;

    #[test]
    fn accepts_media_types_and_ranges() {
        for (text, is_type, is_range) in [
            ("text/html", true, true),
            ("a/b+c", true, true),
            ("image/*", false, true),
            ("*/*", false, false),
            ("text/html; q=1", false, false),
            ("text", false, false),
            ("text/", false, false),
            ("/x", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_media_type(text, false), is_media_type(text, true)),
                (is_type, is_range),
                "{text}"
            );
        }
    }
}
