//! Media types by file name and extension (RFC 9110 section 8.3): the built-in ones and those of a folder.
//!
//! The table is generated from mime-db 1.54.0 of 2025-03-17 (<https://github.com/jshttp/mime-db>, MIT licence), which
//! collects the types of IANA, Apache and nginx. IANA has priority. `examples/media_types.rs` generates it and lists
//! the exceptions with their reasons.

use std::borrow::Cow;
use std::cmp::Ordering;

use shearwater::engine::media_type::{is_media_type, is_token};

use crate::limits::MEDIA_TYPES_MAX;
use crate::options::{BadOption, MediaTypeOptions};

/// Type of files with an unknown extension.
const UNKNOWN: &str = "application/octet-stream";

/// Lines of an extension in lower case, a space, and its type, sorted by extension. An array of strings would need a
/// relocation for each entry at startup.
const TABLE: &str = include_str!("media_types.txt");

/// The longest extension of the table.
const EXTENSION_BYTES_MAX: usize = 24;

/// The charset of text in the table.
const CHARSET: &str = "; charset=utf-8";

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

/// Returns whether a file of this type and name is compressed by gzip: an SVG image named `NAME.svgz`.
pub(crate) fn is_gzipped(name: &[u8], media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default();
    is_svgz(name) && essence.trim_ascii_end().eq_ignore_ascii_case("image/svg+xml")
}

pub(crate) fn is_svgz(name: &[u8]) -> bool {
    extension(name).is_some_and(|extension| extension.eq_ignore_ascii_case(b"svgz"))
}

/// The media types of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MediaTypes {
    /// Extensions in lower case, and whole names after a slash, sorted.
    own: Vec<(Vec<u8>, String)>,
    otherwise: String,
    /// Charset of built-in text types, empty for none, if it isn't the usual one.
    charset: Option<String>,
}

impl MediaTypes {
    pub(crate) fn new(options: &MediaTypeOptions) -> Result<Self, BadOption> {
        let MediaTypeOptions { by_extension, by_name, otherwise, charset } = options;
        let mut own: Vec<(Vec<u8>, String)> = Vec::new();
        let extensions = by_extension.iter().map(|(extension, media_type)| {
            let why = "an extension is the part of a name after its last dot";
            (extension, extension.to_ascii_lowercase(), is_extension(extension), why, media_type)
        });
        let names = by_name.iter().map(|(name, media_type)| {
            let is_name = !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '\0']);
            (name, format!("/{name}"), is_name, "a name has no slash", media_type)
        });
        for (written, key, is_valid, why, media_type) in extensions.chain(names) {
            let key = key.into_bytes();
            let why = match own.binary_search_by(|(known, _)| known.cmp(&key)) {
                _ if !is_valid => why,
                Ok(_) => "listed twice",
                Err(_) if own.len() >= MEDIA_TYPES_MAX => "too many values",
                Err(place) => {
                    own.insert(place, (key, checked("media type", media_type)?));
                    continue;
                }
            };
            return Err(BadOption::new("media type", written, why));
        }
        if let Some(charset) = charset.as_ref().filter(|charset| !charset.is_empty() && !is_token(charset)) {
            return Err(BadOption::new("charset", charset, "expected a charset such as utf-8"));
        }
        let otherwise = otherwise.as_deref().unwrap_or(UNKNOWN);
        let otherwise = checked("default media type", otherwise)?;
        Ok(Self { own, otherwise, charset: charset.clone() })
    }

    /// Returns the media type of a file: one that was set is returned as it is.
    pub(crate) fn of(&self, name: &[u8]) -> Cow<'_, str> {
        let own = |key: &[u8]| {
            let found = self.own.binary_search_by(|(known, _)| known.as_slice().cmp(key)).ok()?;
            Some(Cow::from(&self.own[found].1))
        };
        let own_type = || {
            let file = name.rsplit(|&byte| byte == b'/').next()?;
            own(&[b"/", file].concat()).or_else(|| own(&extension(name)?.to_ascii_lowercase()))
        };
        if !self.own.is_empty()
            && let Some(media_type) = own_type()
        {
            return media_type;
        }
        let Some(built_in) = known_type(name) else { return Cow::from(&self.otherwise) };
        match (&self.charset, built_in.strip_suffix(CHARSET)) {
            (Some(charset), Some(bare)) if charset.is_empty() => bare.into(),
            (Some(charset), Some(bare)) => format!("{bare}; charset={charset}").into(),
            _ => built_in.into(),
        }
    }
}

fn is_extension(text: &str) -> bool {
    !text.is_empty() && !text.contains(['.', '/', '\0'])
}

/// Validates a media type, which is sent as it is.
fn checked(option: &'static str, media_type: &str) -> Result<String, BadOption> {
    match is_media_type(media_type) {
        true => Ok(media_type.to_owned()),
        false => Err(BadOption::new(option, media_type, "expected a media type such as text/plain")),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        EXTENSION_BYTES_MAX, MEDIA_TYPES_MAX, MediaTypeOptions, MediaTypes, TABLE, UNKNOWN, find, is_gzipped,
        media_type,
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
            ..MediaTypeOptions::default()
        }
    }

    #[test]
    fn own_types_come_first_and_are_sent_as_written() {
        let pairs = [
            ("FOO", "text/x-foo"),
            ("js", "application/javascript"),
            ("t", "Text/X; Charset=x"),
            ("veryverylongextension", "a/b"),
        ];
        let types = MediaTypes::new(&options(&pairs, Some("text/plain"))).expect("types");
        for (name, media_type) in [
            ("a.foo", "text/x-foo"),
            ("a/b.FOO", "text/x-foo"),
            ("a.js", "application/javascript"),
            ("a.t", "Text/X; Charset=x"),
            ("a.veryverylongextension", "a/b"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.bin", "application/octet-stream"),
            ("README", "text/plain"),
            ("a.unknown", "text/plain"),
            (".foo", "text/plain"),
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
    fn whole_names_come_before_extensions() {
        let pair = |name: &str, media_type: &str| (name.to_owned(), media_type.to_owned());
        let mut options = options(&[("txt", "text/x-ext"), ("license", "a/ext")], None);
        options.by_name = vec![
            pair("LICENSE", "text/plain"),
            pair("robots.txt", "text/x-robots"),
            pair("apple-app-site-association", "application/json"),
        ];
        let types = MediaTypes::new(&options).expect("types");
        for (name, media_type) in [
            ("LICENSE", "text/plain"),
            ("a/b/LICENSE", "text/plain"),
            ("license", UNKNOWN),
            ("LICENSE/a", UNKNOWN),
            ("a.license", "a/ext"),
            ("robots.txt", "text/x-robots"),
            ("norobots.txt", "text/x-ext"),
            (".well-known/apple-app-site-association", "application/json"),
        ] {
            assert_eq!(types.of(name.as_bytes()), media_type, "{name}");
        }
        for name in ["", "a/b", "/a", ".", "..", "a\0", "LICENSE"] {
            let mut bad = options.clone();
            bad.by_name.push(pair(name, "a/b"));
            assert!(MediaTypes::new(&bad).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_charset_of_built_in_types_can_be_set() {
        for (charset, css, svg) in [
            (None, "text/css; charset=utf-8", "image/svg+xml; charset=utf-8"),
            (Some("windows-1252"), "text/css; charset=windows-1252", "image/svg+xml; charset=windows-1252"),
            (Some(""), "text/css", "image/svg+xml"),
        ] {
            let mut options = options(&[("html", "text/html")], None);
            options.charset = charset.map(str::to_owned);
            let types = MediaTypes::new(&options).expect("types");
            let all = [&b"a.css"[..], b"a.svg", b"a.png", b"a.html", b"a"].map(|name| types.of(name));
            assert_eq!(all, [css, svg, "image/png", "text/html", UNKNOWN], "{charset:?}");
        }
        for charset in ["utf 8", "utf-8;", "\"utf-8\"", "\r\n"] {
            let bad = MediaTypeOptions { charset: Some(charset.to_owned()), ..MediaTypeOptions::default() };
            assert!(MediaTypes::new(&bad).is_err(), "{charset:?}");
        }
    }

    #[test]
    fn svgz_is_gzip_if_it_is_sent_as_svg() {
        assert_eq!(media_type(b"a.svgz"), media_type(b"a.svg"));
        for (name, media_type, expected) in [
            ("a.svgz", "image/svg+xml; charset=utf-8", true),
            ("a/B.SVGZ", "Image/SVG+xml ;a=b", true),
            ("a.svgz", "image/svg+xmlx", false),
            ("a.svgz", "application/gzip", false),
            ("a.svg", "image/svg+xml", false),
            (".svgz", "image/svg+xml", false),
        ] {
            assert_eq!(is_gzipped(name.as_bytes(), media_type), expected, "{name} {media_type}");
        }
    }

    #[test]
    fn limits_the_number_of_types() {
        let many = |count: usize| MediaTypeOptions {
            by_extension: (1..count).map(|number| (format!("x{number}"), "a/b".to_owned())).collect(),
            by_name: vec![("x0".to_owned(), "a/b".to_owned())],
            ..MediaTypeOptions::default()
        };
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX)).is_ok());
        assert!(MediaTypes::new(&many(MEDIA_TYPES_MAX + 1)).is_err());
    }
}
