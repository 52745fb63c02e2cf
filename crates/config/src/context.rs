//! State of reading one configuration: the current key, the problems found, the strings with environment variables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostics::Found;
use crate::limits::{PROBLEMS_MAX, VALUE_BYTES_MAX};

/// A value with its location in the file.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// Passed to every rule while a file is read.
pub(crate) struct Context<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the heading of the table that has a key.
    pub(crate) table_of: fn(&str) -> Option<String>,
    /// The folder that relative paths are resolved against.
    pub(crate) base: &'a Path,
    /// The current key, such as `site[0].root`.
    path: String,
    pub(crate) written: Written,
    pub(crate) found: Vec<Found>,
    pub(crate) left_out: usize,
}

/// Strings that contain variables, by key: as written, and with the variables substituted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(pub(crate) BTreeMap<String, (String, String)>);

/// Configurations are equal if their values are, whatever their text.
impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Written {}

impl<'a> Context<'a> {
    pub(crate) fn new(
        base: &'a Path,
        environment: &'a dyn Fn(&str) -> Option<String>,
        table_of: fn(&str) -> Option<String>,
    ) -> Self {
        let (path, written) = (String::new(), Written::default());
        Self { environment, table_of, base, path, written, found: Vec::new(), left_out: 0 }
    }

    /// Runs `read` with the current key extended by `.name`.
    pub(crate) fn within<R>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.extended(&format!("{dot}{name}"), read)
    }

    /// Runs `read` with the current key extended by `[index]`.
    pub(crate) fn within_element<R>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> R) -> R {
        self.extended(&format!("[{index}]"), read)
    }

    fn extended<R>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.path.len();
        self.path.push_str(part);
        let result = read(self);
        self.path.truncate(len);
        result
    }

    /// Reports an error at the current key.
    pub(crate) fn error(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.report(self.path.clone(), span, message.into(), None);
    }

    /// Reports an error at the current key, with help.
    pub(crate) fn error_with_help(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(self.path.clone(), span, message.into(), Some(help.into()));
    }

    /// Reports an error at any key.
    pub(crate) fn report(&mut self, key: String, span: &Range<usize>, message: String, help: Option<String>) {
        if self.found.len() < PROBLEMS_MAX {
            self.found.push(Found { span: span.clone(), key, message, help });
        } else {
            self.left_out += 1;
        }
    }

    /// Reports a value of another type.
    pub(crate) fn mismatch(&mut self, value: &Value<'_>, expected: &str, allowed: &str) {
        let message = format!("expected {expected}, found {}", type_name(value.get_ref()));
        self.error_with_help(&value.span(), message, format!("allowed: {allowed}"));
    }

    /// Returns the number of problems, including those left out.
    pub(crate) fn count(&self) -> usize {
        self.found.len() + self.left_out
    }

    /// Returns whether a key and everything in it is free of errors so far.
    pub(crate) fn is_sound(&self, key: &str) -> bool {
        self.left_out == 0 && !self.found.iter().any(|found| found.key.starts_with(key))
    }

    /// Returns whether the current key and everything in it is free of errors so far.
    pub(crate) fn is_sound_here(&self) -> bool {
        self.is_sound(&self.path)
    }

    /// Records the final form of the current key's text, if it contains variables.
    pub(crate) fn becomes(&mut self, value: &str) {
        if let Some((_, whole)) = self.written.0.get_mut(&self.path) {
            value.clone_into(whole);
        }
    }

    /// Reads a string and substitutes its variables.
    pub(crate) fn text(&mut self, value: &Value<'_>, allowed: &str) -> Option<String> {
        let DeValue::String(written) = value.get_ref() else {
            self.mismatch(value, "a string", allowed);
            return None;
        };
        let text = match substitute(written, self.environment) {
            Ok(None) => written.to_string(),
            Ok(Some(whole)) => {
                self.written.0.insert(self.path.clone(), (written.to_string(), whole.clone()));
                whole
            }
            Err((message, help)) => {
                self.error_with_help(&value.span(), message, help);
                return None;
            }
        };
        if text.len() > VALUE_BYTES_MAX {
            self.error(&value.span(), format!("string is longer than {VALUE_BYTES_MAX} bytes"));
            return None;
        }
        Some(text)
    }
}

/// Returns the name of a value's type, with its article.
fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// A message and a help text, without the value of any variable.
type Invalid = (String, String);

/// Substitutes environment variables, `${NAME}` or `${NAME:-default}`; `$${` is a literal `${`. `None`: the text has none.
fn substitute(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, Invalid> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            whole.push_str(before);
            whole.push_str("${");
            rest = &from[2..];
            continue;
        }
        whole.push_str(before);
        let Some((inside, after)) = from[2..].split_once('}') else {
            return Err(("unclosed `${`".to_owned(), "a literal `${` is written `$${`".to_owned()));
        };
        whole.push_str(&variable(inside, environment)?);
        if whole.len() > VALUE_BYTES_MAX {
            break;
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(Some(whole))
}

/// Returns the value of a variable from the text between the braces.
fn variable(inside: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Invalid> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        let help = "a name consists of letters, digits and `_`, and doesn't start with a digit";
        return Err(("invalid variable name between `${` and `}`".to_owned(), help.to_owned()));
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err((
            format!("environment variable `{name}` is not set, or not UTF-8"),
            format!("`${{{name}:-default}}` uses a default"),
        )),
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A key, and the strings of the file that contain variables.
#[derive(Clone, Default)]
pub(crate) struct KeyPath<'a> {
    written: Option<&'a Written>,
    path: String,
}

impl<'a> KeyPath<'a> {
    /// Returns the path of the whole file.
    pub(crate) const fn root(written: &'a Written) -> Self {
        Self { written: Some(written), path: String::new() }
    }

    /// Returns the path of a key within.
    pub(crate) fn key(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{dot}{name}", self.path), ..*self }
    }

    /// Returns the path of an element.
    pub(crate) fn element(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), ..*self }
    }

    /// Formats a string as TOML, with variables as written.
    pub(crate) fn quoted(&self, value: &str) -> String {
        quoted(&self.as_written(value).unwrap_or_else(|| value.replace("${", "$${")))
    }

    /// Returns a string with variables as written. A route inherits those of its site.
    fn as_written(&self, value: &str) -> Option<String> {
        let of = |path: &str| {
            let (written, whole) = self.written?.0.get(path)?;
            (whole == value).then(|| written.clone())
        };
        of(&self.path).or_else(|| {
            let (site, key) = self.path.split_once(".route[")?;
            let (_, key) = key.split_once("].")?;
            of(&format!("{site}.{key}"))
        })
    }
}

/// Formats a basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats a key, bare if possible.
pub(crate) fn bare_or_quoted(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::{KeyPath, Written, bare_or_quoted, quoted, substitute};

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn substitutes_variables_once() {
        for (text, whole) in [
            ("plain", None),
            ("$A {A} $", None),
            ("${A}", Some("one")),
            ("x${A}y${A}z", Some("xoneyonez")),
            ("${EMPTY}", Some("")),
            ("${EMPTY:-other}", Some("other")),
            ("${NONE:-other}", Some("other")),
            ("${NONE:-}", Some("")),
            ("${A:-other}", Some("one")),
            ("${NONE:-a:-b}", Some("a:-b")),
            ("$${A}", Some("${A}")),
            ("$$${A}", Some("$${A}")),
            ("$${A} ${A}", Some("${A} one")),
            ("${NESTED}", Some("${A}")),
        ] {
            assert_eq!(substitute(text, &environment), Ok(whole.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_and_missing_variables() {
        let invalid = "invalid variable name";
        for (text, start) in [
            ("${A", "unclosed"),
            ("${", "unclosed"),
            ("${}", invalid),
            ("${1}", invalid),
            ("${a b}", invalid),
            ("${é}", invalid),
            ("${:-x}", invalid),
            ("${A} ${NONE}", "environment variable `NONE` is not set"),
        ] {
            let (message, help) = substitute(text, &environment).expect_err(text);
            assert!(message.starts_with(start), "{text}: {message}");
            assert!(!message.contains("one") && !help.contains("one"), "{text}: {message}, {help}");
        }
    }

    #[test]
    fn reads_back_quoted_strings() {
        for text in ["", "plain", "a\"b\\c", "line\nnext\r\ttab", "\u{0}\u{1b}\u{7f}\u{85}", "é 🦀", "'"] {
            let line = format!("{} = {}", bare_or_quoted(text), quoted(text));
            let table = DeTable::parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (read_key, value) = table.get_ref().iter().next().expect("a key");
            assert_eq!((read_key.get_ref().as_ref(), value.get_ref().as_str()), (text, Some(text)), "{line}");
        }
    }

    #[test]
    fn writes_variables_as_written_in_routes_too() {
        let mut written = Written::default();
        written.0.insert("site[3].mime.x".to_owned(), ("${T}/x".to_owned(), "text/x".to_owned()));
        for (path, value, text) in [
            ("site[3].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/y", "\"text/y\""),
            ("site[4].mime.x", "text/x", "\"text/x\""),
            ("site[4].mime.x", "${T}", "\"$${T}\""),
        ] {
            let at = KeyPath { written: Some(&written), path: path.to_owned() };
            assert_eq!(at.quoted(value), text, "{path}");
        }
    }
}
