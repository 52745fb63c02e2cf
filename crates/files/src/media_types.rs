//! Media types of a folder: the built-in ones and overrides.

use std::borrow::Cow;

use shearwater::FieldLines;

use crate::limits::MEDIA_TYPES_MAX;
use crate::media_type::{UNKNOWN, extension, known_type};
use crate::options::{BadOption, MediaTypeOptions};

/// Media types by extension.
#[derive(Debug)]
pub(crate) struct MediaTypes {
    /// Extensions in lower case, sorted.
    own: Vec<(Vec<u8>, String)>,
    otherwise: String,
}

impl MediaTypes {
    pub(crate) fn new(options: &MediaTypeOptions) -> Result<Self, BadOption> {
        let mut own: Vec<(Vec<u8>, String)> = Vec::new();
        for (extension, media_type) in &options.by_extension {
            let key = extension.to_ascii_lowercase().into_bytes();
            let why = match own.binary_search_by(|(known, _)| known.cmp(&key)) {
                _ if !is_extension(extension) => "an extension is the part of a name after its last dot",
                Ok(_) => "listed twice",
                Err(_) if own.len() >= MEDIA_TYPES_MAX => "too many values",
                Err(place) => {
                    own.insert(place, (key, checked("media type", media_type)?));
                    continue;
                }
            };
            return Err(BadOption::new("media type", extension, why));
        }
        let otherwise = options.otherwise.as_deref().unwrap_or(UNKNOWN);
        Ok(Self { own, otherwise: checked("default media type", otherwise)? })
    }

    /// Returns the media type of a file.
    pub(crate) fn of(&self, name: &[u8]) -> &str {
        let own = extension(name).and_then(|extension| self.own_type(extension));
        own.or_else(|| known_type(name)).unwrap_or(&self.otherwise)
    }

    fn own_type(&self, extension: &[u8]) -> Option<&str> {
        if self.own.is_empty() {
            return None;
        }
        let key = extension.to_ascii_lowercase();
        let found = self.own.binary_search_by(|(known, _)| known.cmp(&key));
        found.ok().map(|place| self.own[place].1.as_str())
    }
}

fn is_extension(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/', '\0'])
}

/// Validates a media type and adds a `charset` to text.
fn checked(option: &'static str, media_type: &str) -> Result<String, BadOption> {
    let bad = |why| BadOption::new(option, media_type, why);
    let words = media_type.split_once('/').ok_or_else(|| bad("expected a media type such as text/plain"))?;
    if words.0.trim().is_empty() || words.1.trim().is_empty() {
        return Err(bad("expected a media type such as text/plain"));
    }
    if FieldLines::new().push("Content-Type", media_type).is_err() {
        return Err(bad("not a valid header value"));
    }
    Ok(with_charset(media_type).into_owned())
}

fn with_charset(media_type: &str) -> Cow<'_, str> {
    let lower = media_type.to_ascii_lowercase();
    match lower.starts_with("text/") && !lower.contains("charset") {
        true => Cow::Owned(format!("{media_type}; charset=utf-8")),
        false => Cow::Borrowed(media_type),
    }
}

#[cfg(test)]
mod tests {
    use super::MediaTypes;
    use crate::limits::MEDIA_TYPES_MAX;
    use crate::options::MediaTypeOptions;

    fn options(pairs: &[(&str, &str)], otherwise: Option<&str>) -> MediaTypeOptions {
        let own =
            |(extension, media_type): &(&str, &str)| ((*extension).to_owned(), (*media_type).to_owned());
        MediaTypeOptions {
            by_extension: pairs.iter().map(own).collect(),
            otherwise: otherwise.map(str::to_owned),
        }
    }

    #[test]
    fn own_types_come_first_and_text_is_utf_8() {
        let pairs = [
            ("FOO", "text/x-foo"),
            ("js", "application/javascript"),
            ("t", "Text/X; Charset=x"),
            ("veryverylongextension", "a/b"),
        ];
        let types = MediaTypes::new(&options(&pairs, Some("text/plain"))).expect("types");
        for (name, media_type) in [
            ("a.foo", "text/x-foo; charset=utf-8"),
            ("a/b.FOO", "text/x-foo; charset=utf-8"),
            ("a.js", "application/javascript"),
            ("a.t", "Text/X; Charset=x"),
            ("a.veryverylongextension", "a/b"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.bin", "application/octet-stream"),
            ("README", "text/plain; charset=utf-8"),
            ("a.unknown", "text/plain; charset=utf-8"),
            (".foo", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(types.of(name.as_bytes()), media_type, "{name}");
        }
        let usual = MediaTypes::new(&MediaTypeOptions::default()).expect("no overrides");
        assert_eq!(usual.of(b"a.unknown"), "application/octet-stream");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for pairs in [
            &[("", "a/b")][..],
            &[("a.b", "a/b")],
            &[("a/b", "a/b")],
            &[("a", "b")],
            &[("a", "")],
            &[("a", "a/b\r\nX: y")],
            &[("a", "a/b"), ("A", "a/c")],
        ] {
            assert!(MediaTypes::new(&options(pairs, None)).is_err(), "{pairs:?}");
        }
        assert!(MediaTypes::new(&options(&[], Some("text"))).is_err());
    }

    #[test]
    fn there_are_so_many_at_most() {
        let many = |count: usize| MediaTypeOptions {
            by_extension: (0..count).map(|number| (format!("x{number}"), "a/b".to_owned())).collect(),
            otherwise: None,
        };
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX)).is_ok());
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX + 1)).is_err());
    }
}
