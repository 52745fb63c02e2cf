//! Writes values as TOML. Strings with variables are written as in the file.

use crate::context::Written;

/// Writes the value of one key.
pub(crate) struct TomlWriter<'a> {
    written: Option<&'a Written>,
    path: String,
    pub(crate) text: String,
}

impl<'a> TomlWriter<'a> {
    pub(crate) fn new(written: Option<&'a Written>, path: String) -> Self {
        Self { written, path, text: String::new() }
    }

    /// Runs `write` with the current key extended by `part`: `.name` or `[index]`.
    pub(crate) fn within<R>(&mut self, part: &str, write: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.path.len();
        self.path.push_str(part);
        let result = write(self);
        self.path.truncate(len);
        result
    }

    /// Writes text that needs no quotes.
    pub(crate) fn plain(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes a string.
    pub(crate) fn quoted(&mut self, value: &str) {
        let text = self.as_written(value).unwrap_or_else(|| value.replace("${", "$${"));
        self.text.push_str(&quoted(&text));
    }

    /// Returns a string with variables as written. A route inherits those of its site.
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

/// Formats a basic string.
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

/// Formats a key, bare if possible.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::{TomlWriter, key, quoted};
    use crate::context::Written;

    #[test]
    fn reads_back_quoted_strings() {
        for text in ["", "plain", "a\"b\\c", "line\nnext\r\ttab", "\u{0}\u{1b}\u{7f}\u{85}", "é 🦀", "'"] {
            let line = format!("{} = {}", key(text), quoted(text));
            let table = DeTable::parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (read_key, value) = table.get_ref().iter().next().expect("a key");
            assert_eq!((read_key.get_ref().as_ref(), value.get_ref().as_str()), (text, Some(text)), "{line}");
        }
    }

    #[test]
    fn writes_variables_as_written_in_routes_too() {
        let mut written = Written::new();
        written.insert("site[3].mime.x".to_owned(), ("${T}/x".to_owned(), "text/x".to_owned()));
        for (path, value, text) in [
            ("site[3].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/x", "\"${T}/x\""),
            ("site[3].route[7].mime.x", "text/y", "\"text/y\""),
            ("site[4].mime.x", "text/x", "\"text/x\""),
            ("site[4].mime.x", "${T}", "\"$${T}\""),
        ] {
            let mut writer = TomlWriter::new(Some(&written), path.to_owned());
            writer.quoted(value);
            assert_eq!(writer.text, text, "{path}");
        }
    }
}
