//! Media types by file name extension (RFC 9110 section 8.3): the built-in ones and those of a folder.
//!
//! The table is generated from mime-db 1.54.0 of 2025-03-17 (<https://github.com/jshttp/mime-db>, MIT licence), which
//! collects the types of IANA, Apache and nginx. IANA has priority. `examples/media_types.rs` generates it and lists
//! the exceptions with their reasons.

use std::cmp::Ordering;

use shearwater::engine::FieldLines;

use crate::limits::MEDIA_TYPES_MAX;
use crate::options::{BadOption, MediaTypeOptions};

/// Type of files with an unknown extension.
const UNKNOWN: &str = "application/octet-stream";

/// Lines of an extension in lower case, a space, and its type, sorted by extension. An array of strings would need a
/// relocation for each entry at startup.
const TABLE: &str = include_str!("media_types.txt");

/// The longest extension of the table.
const EXTENSION_BYTES_MAX: usize = 24;

/// Returns the media type for a file name, with `charset=utf-8` for text. `application/octet-stream` if the extension
/// is unknown or absent.
///
/// ```
/// assert_eq!(shearwater_files::media_type(b"a/page.HTML"), "text/html; charset=utf-8");
/// ```
#[must_use]
pub fn media_type(name: &[u8]) -> &'static str {
    known_type(name).unwrap_or(UNKNOWN)
}

/// Returns the media type for a file name with a known extension.
fn known_type(name: &[u8]) -> Option<&'static str> {
    let mut lower = [0; EXTENSION_BYTES_MAX];
    let extension = extension(name)?;
    let lower = lower.get_mut(..extension.len())?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    find(TABLE, lower)
}

/// Finds the type of an extension by binary search over the lines.
fn find<'a>(mut table: &'a str, extension: &[u8]) -> Option<&'a str> {
    while !table.is_empty() {
        let start = table.as_bytes()[..table.len() / 2]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        let (before, rest) = table.split_at(start);
        let (line, after) = rest.split_once('\n')?;
        let (known, media_type) = line.split_once(' ')?;
        table = match extension.cmp(known.as_bytes()) {
            Ordering::Equal => return Some(media_type),
            Ordering::Less => before,
            Ordering::Greater => after,
        };
    }
    None
}

/// Returns the extension: the part of the last segment after its last dot. A segment that begins with this dot
/// (`.profile`) has none.
fn extension(name: &[u8]) -> Option<&[u8]> {
    let file = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = file.iter().rposition(|&byte| byte == b'.')?;
    (dot > 0).then(|| &file[dot + 1..])
}

/// Media types by extension.
#[derive(Debug, PartialEq, Eq)]
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
        if !self.own.is_empty()
            && let Some(key) = extension(name).map(<[u8]>::to_ascii_lowercase)
            && let Ok(place) = self.own.binary_search_by(|(known, _)| known.cmp(&key))
        {
            return &self.own[place].1;
        }
        known_type(name).unwrap_or(&self.otherwise)
    }
}

fn is_extension(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/', '\0'])
}

/// Returns whether a text can be sent as a media type: `type/subtype`, perhaps with parameters.
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let has_both = |(kind, subtype): (&str, &str)| !kind.trim().is_empty() && !subtype.trim().is_empty();
    text.split_once('/').is_some_and(has_both) && FieldLines::new().push("Content-Type", text).is_ok()
}

/// Validates a media type and adds a `charset` to text.
fn checked(option: &'static str, media_type: &str) -> Result<String, BadOption> {
    if !is_media_type(media_type) {
        return Err(BadOption::new(option, media_type, "expected a media type such as text/plain"));
    }
    let lower = media_type.to_ascii_lowercase();
    let charset =
        if lower.starts_with("text/") && !lower.contains("charset") { "; charset=utf-8" } else { "" };
    Ok(format!("{media_type}{charset}"))
}

#[cfg(test)]
mod tests {
    use super::{
        EXTENSION_BYTES_MAX, MEDIA_TYPES_MAX, MediaTypeOptions, MediaTypes, TABLE, UNKNOWN, find, media_type,
    };

    /// Types that must not change with an update of the table.
    const KNOWN: &str = include_str!("media_types_known.txt");

    fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
        table.lines().map(|line| line.split_once(' ').expect("an extension and its type"))
    }

    #[test]
    fn searches_the_whole_table() {
        assert!(TABLE.ends_with('\n') && lines(TABLE).count() > 1_000);
        assert!(lines(TABLE).is_sorted_by(|(a, _), (b, _)| a < b));
        assert_eq!(lines(TABLE).map(|(extension, _)| extension.len()).max(), Some(EXTENSION_BYTES_MAX));
        for (extension, expected) in lines(TABLE) {
            assert!(
                extension
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'.' && !byte.is_ascii_uppercase())
            );
            assert_eq!(media_type(format!("a/b.{}", extension.to_uppercase()).as_bytes()), expected);
            for other in [format!("{extension}\0"), format!(" {extension}"), extension[1..].to_owned() + "~"]
            {
                assert_eq!(find(TABLE, other.as_bytes()), None, "{other}");
            }
        }
        assert_eq!((find(TABLE, b""), find("", b"a")), (None, None));
    }

    #[test]
    fn types_are_valid_and_text_has_a_charset() {
        for (extension, media_type) in lines(TABLE) {
            let (essence, charset) = media_type.split_once("; ").unwrap_or((media_type, ""));
            let words: Vec<_> = essence.split('/').collect();
            let is_word = |word: &&str| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
            };
            assert!(words.len() == 2 && words.iter().all(is_word), "{extension} {media_type}");
            assert!(matches!(charset, "" | "charset=utf-8"), "{extension} {media_type}");
            assert!(!charset.is_empty() || words[0] != "text", "{extension} {media_type}");
        }
    }

    #[test]
    fn well_known_types_follow_iana_and_whatwg() {
        for (extension, expected) in lines(KNOWN) {
            assert_eq!(media_type(format!("a.{extension}").as_bytes()), expected, "{extension}");
        }
    }

    #[test]
    fn names_without_a_known_extension() {
        for name in
            ["", "a", ".html", "a/.css", "a.b/c", "a.", "a.unknown", "a.webmanifestx", "x.html/", "main.rs"]
        {
            assert_eq!(media_type(name.as_bytes()), UNKNOWN, "{name}");
        }
    }

    fn options(pairs: &[(&str, &str)], otherwise: Option<&str>) -> MediaTypeOptions {
        let own =
            |(extension, media_type): &(&str, &str)| ((*extension).to_owned(), (*media_type).to_owned());
        MediaTypeOptions {
            by_extension: pairs.iter().map(own).collect(),
            otherwise: otherwise.map(str::to_owned),
        }
    }

    #[test]
    fn own_types_come_first_and_text_gets_a_charset() {
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
    fn rejects_invalid_types() {
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
    fn limits_the_number_of_types() {
        let many = |count: usize| MediaTypeOptions {
            by_extension: (0..count).map(|number| (format!("x{number}"), "a/b".to_owned())).collect(),
            otherwise: None,
        };
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX)).is_ok());
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX + 1)).is_err());
    }
}
