//! Media types by file name extension (RFC 9110 section 8.3; names from the IANA registry).

/// What a file of unknown extension is.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// Extensions in lower case, sorted.
const TYPES: &[(&str, &str)] = &[
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
];

/// The longest extension of the table.
const EXTENSION_BYTES_MAX: usize = 11;

/// The media type for a file name, with `charset=utf-8` where it is text. `application/octet-stream` if the extension
/// is unknown or absent.
///
/// ```
/// assert_eq!(shearwater_files::media_type(b"a/page.HTML"), "text/html; charset=utf-8");
/// ```
#[must_use]
pub fn media_type(name: &[u8]) -> &'static str {
    known_type(name).unwrap_or(UNKNOWN)
}

/// The media type for a file name of a known extension.
pub(crate) fn known_type(name: &[u8]) -> Option<&'static str> {
    let mut lower = [0; EXTENSION_BYTES_MAX];
    let extension = extension(name)?;
    let lower = lower.get_mut(..extension.len())?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    let found = TYPES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower));
    found.ok().map(|index| TYPES[index].1)
}

/// What follows the last dot of the last segment, unless the name begins there (`.profile` has none).
pub(crate) fn extension(name: &[u8]) -> Option<&[u8]> {
    let file = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = file.iter().rposition(|&byte| byte == b'.')?;
    (dot > 0).then(|| &file[dot + 1..])
}

#[cfg(test)]
mod tests {
    use super::{EXTENSION_BYTES_MAX, TYPES, UNKNOWN, media_type};

    #[test]
    fn the_table_can_be_searched() {
        assert!(TYPES.is_sorted_by(|(a, _), (b, _)| a < b));
        assert_eq!(TYPES.iter().map(|(extension, _)| extension.len()).max(), Some(EXTENSION_BYTES_MAX));
        for (extension, wanted) in TYPES {
            assert_eq!(media_type(format!("a/b.{}", extension.to_uppercase()).as_bytes()), *wanted);
        }
    }

    #[test]
    fn names_without_a_known_extension() {
        for name in ["", "a", ".html", "a/.css", "a.b/c", "a.", "a.unknown", "a.webmanifestx", "x.html/"] {
            assert_eq!(media_type(name.as_bytes()), UNKNOWN, "{name}");
        }
    }
}
