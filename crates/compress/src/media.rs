//! Media types whose content compresses.

/// Types other than `text/…`, `…+json` and `…+xml` that compress, in lower case, sorted.
const COMPRESSIBLE: &[&str] = &[
    "application/ecmascript",
    "application/geo+json-seq",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/json-seq",
    "application/ld+json",
    "application/manifest+json",
    "application/msword",
    "application/ndjson",
    "application/pgp-keys",
    "application/postscript",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.api+json",
    "application/vnd.ms-excel",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-tar",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "model/gltf-binary",
    "model/obj",
    "model/stl",
];

/// Structured suffixes of text (RFC 6839).
const SUFFIXES: [&[u8]; 4] = [b"+json", b"+xml", b"+text", b"+yaml"];

/// Returns whether content of this type usually compresses. Parameters, such as a charset, don't matter.
///
/// ```
/// use shearwater_compress::is_compressible;
///
/// assert!(is_compressible(b"text/html; charset=utf-8"));
/// assert!(!is_compressible(b"image/png"));
/// ```
#[must_use]
pub fn is_compressible(media_type: &[u8]) -> bool {
    let essence = media_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    let has_suffix = SUFFIXES.iter().any(|suffix| essence.ends_with(suffix));
    has_suffix
        || essence.starts_with(b"text/")
        || COMPRESSIBLE.binary_search_by(|known| known.as_bytes().cmp(&essence)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{COMPRESSIBLE, is_compressible};

    #[test]
    fn knows_what_compresses() {
        assert!(COMPRESSIBLE.is_sorted_by(|a, b| a < b));
        for media_type in [
            "text/plain",
            "TEXT/CSS",
            "text/event-stream",
            "application/json",
            "application/problem+json; charset=utf-8",
            "image/svg+xml",
            "application/rss+xml",
            "application/wasm",
            "font/ttf",
        ] {
            assert!(is_compressible(media_type.as_bytes()), "{media_type}");
        }
        for media_type in [
            "",
            "text",
            "image/png",
            "font/woff2",
            "video/mp4",
            "application/zip",
            "application/octet-stream",
            "multipart/byteranges; boundary=a",
            "application/jsonx",
            "image/jpeg; text/html",
        ] {
            assert!(!is_compressible(media_type.as_bytes()), "{media_type}");
        }
    }
}
