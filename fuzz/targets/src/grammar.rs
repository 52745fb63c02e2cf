//! Grammar of messages as regular expressions over bytes (RFC 9110 and 9112).

use regex::bytes::{Regex, RegexBuilder};

/// `token`.
pub(crate) const TOKEN: &str = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+";
/// A byte of `field-content`, tabs and spaces included.
pub(crate) const CONTENT: &str = r"[\t -~\x80-\xFF]";
/// `quoted-string`.
pub(crate) const QUOTED: &str = r#""(?:[\t -!#-\[\]-~\x80-\xFF]|\\[\t -~\x80-\xFF])*""#;

/// Compiles a pattern in which `.` and classes are bytes.
pub(crate) fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).unicode(false).build().expect("the patterns are constants")
}

/// Returns true for bytes that the parser accepts in a field's value.
pub(crate) fn is_content(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F))
}
