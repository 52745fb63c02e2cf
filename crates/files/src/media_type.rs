//! Media types by file name extension (RFC 9110 section 8.3).
//!
//! The table is generated from mime-db 1.54.0 of 2025-03-17 (<https://github.com/jshttp/mime-db>, MIT licence), which
//! collects the types of IANA, Apache and nginx. IANA has priority. `examples/media_types.rs` generates it and lists
//! the exceptions with their reasons.

use std::cmp::Ordering;

/// Type of files with an unknown extension.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

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
pub(crate) fn known_type(name: &[u8]) -> Option<&'static str> {
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
pub(crate) fn extension(name: &[u8]) -> Option<&[u8]> {
    let file = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = file.iter().rposition(|&byte| byte == b'.')?;
    (dot > 0).then(|| &file[dot + 1..])
}

#[cfg(test)]
mod tests {
    use super::{EXTENSION_BYTES_MAX, TABLE, UNKNOWN, find, media_type};

    /// Types that must not change with an update of the table.
    const KNOWN: &[(&str, &str)] = &[
        ("7z", "application/x-7z-compressed"),
        ("aac", "audio/aac"),
        ("apng", "image/apng"),
        ("atom", "application/atom+xml; charset=utf-8"),
        ("avif", "image/avif"),
        ("bin", "application/octet-stream"),
        ("bmp", "image/bmp"),
        ("br", "application/x-brotli"),
        ("bz2", "application/x-bzip2"),
        ("css", "text/css; charset=utf-8"),
        ("csv", "text/csv; charset=utf-8"),
        ("epub", "application/epub+zip"),
        ("flac", "audio/flac"),
        ("geojson", "application/geo+json"),
        ("gif", "image/gif"),
        ("gz", "application/gzip"),
        ("htm", "text/html; charset=utf-8"),
        ("html", "text/html; charset=utf-8"),
        ("ico", "image/vnd.microsoft.icon"),
        ("ics", "text/calendar; charset=utf-8"),
        ("jpeg", "image/jpeg"),
        ("jpg", "image/jpeg"),
        ("js", "text/javascript; charset=utf-8"),
        ("json", "application/json"),
        ("jsonld", "application/ld+json"),
        ("jxl", "image/jxl"),
        ("m3u8", "application/vnd.apple.mpegurl"),
        ("m4a", "audio/mp4"),
        ("map", "application/json"),
        ("md", "text/markdown; charset=utf-8"),
        ("mjs", "text/javascript; charset=utf-8"),
        ("mkv", "video/matroska"),
        ("mov", "video/quicktime"),
        ("mp3", "audio/mpeg"),
        ("mp4", "video/mp4"),
        ("mpd", "application/dash+xml"),
        ("oga", "audio/ogg"),
        ("ogg", "audio/ogg"),
        ("ogv", "video/ogg"),
        ("opus", "audio/ogg"),
        ("otf", "font/otf"),
        ("pdf", "application/pdf"),
        ("png", "image/png"),
        ("rss", "application/rss+xml; charset=utf-8"),
        ("svg", "image/svg+xml; charset=utf-8"),
        ("tar", "application/x-tar"),
        ("tif", "image/tiff"),
        ("tiff", "image/tiff"),
        ("toml", "application/toml"),
        ("ts", "video/mp2t"),
        ("ttf", "font/ttf"),
        ("txt", "text/plain; charset=utf-8"),
        ("vtt", "text/vtt; charset=utf-8"),
        ("wasm", "application/wasm"),
        ("wav", "audio/wav"),
        ("weba", "audio/webm"),
        ("webm", "video/webm"),
        ("webmanifest", "application/manifest+json"),
        ("webp", "image/webp"),
        ("woff", "font/woff"),
        ("woff2", "font/woff2"),
        ("xhtml", "application/xhtml+xml; charset=utf-8"),
        ("xml", "application/xml; charset=utf-8"),
        ("yaml", "application/yaml"),
        ("yml", "application/yaml"),
        ("zip", "application/zip"),
        ("zst", "application/zstd"),
        // Types that came with mime-db.
        ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("eot", "application/vnd.ms-fontobject"),
        ("glb", "model/gltf-binary"),
        ("gltf", "model/gltf+json"),
        ("heic", "image/heic"),
        ("ini", "text/plain; charset=utf-8"),
        ("jsx", "text/jsx; charset=utf-8"),
        ("log", "text/plain; charset=utf-8"),
        ("m4s", "video/iso.segment"),
        ("m4v", "video/x-m4v"),
        ("mid", "audio/midi"),
        ("mka", "audio/matroska"),
        ("mpeg", "video/mpeg"),
        ("pem", "application/x-x509-ca-cert"),
        ("rtf", "application/rtf"),
        ("sh", "application/x-sh"),
        ("sql", "application/sql"),
        ("tgz", "application/gzip"),
        ("ttc", "font/collection"),
        ("usdz", "model/vnd.usdz+zip"),
        ("vcf", "text/vcard; charset=utf-8"),
        ("wgsl", "text/wgsl; charset=utf-8"),
        ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("xz", "application/x-xz"),
    ];

    fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
        TABLE.lines().map(|line| line.split_once(' ').expect("an extension and its type"))
    }

    #[test]
    fn the_table_can_be_searched() {
        assert!(TABLE.ends_with('\n') && lines().count() > 1_000);
        assert!(lines().is_sorted_by(|(a, _), (b, _)| a < b));
        assert_eq!(lines().map(|(extension, _)| extension.len()).max(), Some(EXTENSION_BYTES_MAX));
        for (extension, expected) in lines() {
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
        for (extension, media_type) in lines() {
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
        for (extension, expected) in KNOWN {
            assert_eq!(media_type(format!("a.{extension}").as_bytes()), *expected, "{extension}");
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
}
