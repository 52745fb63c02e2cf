//! Kinds of files whose content is compressed already.

/// Extensions in lower case, sorted.
const PACKED: &[&str] = &[
    "7z", "aac", "apk", "apng", "avi", "avif", "br", "bz2", "cab", "crx", "deb", "docx", "epub", "flac",
    "gif", "gz", "heic", "heif", "jar", "jpeg", "jpg", "jxl", "lz", "lz4", "lzma", "m4a", "m4v", "mkv",
    "mov", "mp3", "mp4", "mpeg", "mpg", "odp", "ods", "odt", "oga", "ogg", "ogv", "opus", "png", "pptx",
    "rar", "rpm", "tbz", "tgz", "txz", "weba", "webm", "webp", "whl", "woff", "woff2", "xlsx", "xpi", "xz",
    "zip", "zst",
];

/// Whether a file of this name has content that is compressed already.
pub(crate) fn is_packed(name: &[u8]) -> bool {
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else { return false };
    let extension = name[dot + 1..].to_ascii_lowercase();
    PACKED.binary_search_by(|packed| packed.as_bytes().cmp(&extension)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{PACKED, is_packed};

    #[test]
    fn extensions_tell() {
        assert!(PACKED.is_sorted_by(|a, b| a < b));
        for name in ["a.png", "a.b.JPG", ".woff2", "x.tar.gz", "x.br", "x.zst"] {
            assert!(is_packed(name.as_bytes()), "{name}");
        }
        for name in ["png", "a.html", "a.", "", "a.svg", "a.pngx", "a.wasm"] {
            assert!(!is_packed(name.as_bytes()), "{name}");
        }
    }
}
