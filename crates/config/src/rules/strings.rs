//! Strings with a meaning: texts, modes, folders, addresses, paths.

use std::net::SocketAddr;
use std::path::{PathBuf, absolute};

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::checks::{parameter, pattern};
use crate::context::Context;
use crate::diagnostics::shown;
use crate::sections::listen::Address;
use crate::sections::site::Pattern;
use crate::toml_writer::TomlWriter;

/// A string: a description of it, and a check that returns its canonical form.
pub(crate) struct Text(pub(crate) &'static str, pub(crate) fn(&str) -> Result<String, String>);

impl Rule<String> for Text {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut String) {
        let Some(text) = context.text(value, self.0) else { return };
        match self.1(&text.value) {
            Ok(canonical) => {
                *place = canonical;
                context.becomes(place);
            }
            Err(why) => context.error(&value.span(), format!("{:?} {why}", shown(&text.shown))),
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

/// A path of a site: `/exact` or `/prefix/*`.
pub(crate) struct PathPattern;

impl Rule<Pattern> for PathPattern {
    fn read(&self, value: &Spanned<DeValue<'_>>, context: &mut Context<'_>, place: &mut Pattern) {
        let Some(text) = context.text(value, &self.allowed()) else { return };
        if let Some(all) = parameter(&text.value) {
            let help = match text.value == text.shown {
                true => format!("{all:?} matches everything beneath it"),
                false => "a path that ends with /* matches everything beneath it".to_owned(),
            };
            return context.error_with_help(&value.span(), "paths can't have parameters", help);
        }
        match pattern(&text.value) {
            Ok(pattern) => {
                *place = pattern;
                context.becomes(&place.to_string());
            }
            Err(why) => context.error(&value.span(), format!("{:?} {why}", shown(&text.shown))),
        }
    }

    fn write(&self, value: &Pattern, writer: &mut TomlWriter<'_>) -> bool {
        writer.quoted(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        "a path such as \"/about\", or a prefix such as \"/assets/*\"".to_owned()
    }
}
