//! Writes values as TOML: what held variables is written as it was.

use crate::reading::Written;

/// A value being written.
pub(crate) struct Pen<'a> {
    written: Option<&'a Written>,
    path: String,
    pub(crate) text: String,
}

impl<'a> Pen<'a> {
    /// A pen for the value of a key.
    pub(crate) fn new(written: Option<&'a Written>, path: String) -> Self {
        Self { written, path, text: String::new() }
    }

    /// Writes something of a key inside of the present one.
    pub(crate) fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        write(self);
        self.path.truncate(len);
    }

    /// Writes something of an element of the present key.
    pub(crate) fn within_element(&mut self, index: usize, write: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        write(self);
        self.path.truncate(len);
    }

    /// Writes what needs no quotes.
    pub(crate) fn plain(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes a text in quotes.
    pub(crate) fn quoted(&mut self, value: &str) {
        let text = match self.as_written(value) {
            Some(written) => written,
            None => value.replace("${", "$${"),
        };
        self.text.push_str(&quoted(&text));
    }

    /// As the file has a value that a variable is part of. A route has that of its site where it says nothing else.
    fn as_written(&self, value: &str) -> Option<String> {
        let of = |path: &str| {
            let (written, whole) = self.written?.get(path)?;
            (whole == value).then(|| written.clone())
        };
        of(&self.path).or_else(|| {
            let (site, key) = self.path.split_once(".route[")?;
            let (_, key) = key.split_once("].")?;
            of(&format!("{site}.{key}"))
        })
    }
}

/// A basic string of TOML.
pub(crate) fn quoted(text: &str) -> String {
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

/// A key of TOML: bare where it may be.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::{Pen, key, quoted};
    use crate::reading::Written;

    #[test]
    fn what_is_quoted_is_read_back() {
        for text in ["", "plain", "a\"b\\c", "line\nnext\r\ttab", "\u{0}\u{1b}\u{7f}\u{85}", "é 🦀", "'"] {
            let line = format!("{} = {}", key(text), quoted(text));
            let table = DeTable::parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (read_key, value) = table.get_ref().iter().next().expect("a key");
            assert_eq!((read_key.get_ref().as_ref(), value.get_ref().as_str()), (text, Some(text)), "{line}");
        }
    }

    #[test]
    fn a_variable_is_written_as_it_was_in_a_route_too() {
        let mut written = Written::new();
        written.insert("site[3].mime.x".to_owned(), ("${T}/x".to_owned(), "text/x".to_owned()));
        for (path, value, text) in [
            ("site[3].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/y", "\"text/y\""),
            ("site[4].mime.x", "text/x", "\"text/x\""),
            ("site[4].mime.x", "${T}", "\"$${T}\""),
        ] {
            let mut pen = Pen::new(Some(&written), path.to_owned());
            pen.quoted(value);
            assert_eq!(pen.text, text, "{path}");
        }
    }
}
