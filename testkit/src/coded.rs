//! Precompressed files as far as a server looks at them.

/// Wraps bytes so that a server takes them for a content of `len` bytes in this coding, by its extension: `gz`, `br`,
/// `zst`. Others are returned as they are. Nothing can decode them.
#[must_use]
pub fn coded(extension: &str, bytes: impl AsRef<[u8]>, len: usize) -> Vec<u8> {
    let (bytes, len) = (bytes.as_ref(), (len as u32).to_le_bytes());
    match extension {
        "gz" => [&[0x1f, 0x8b, 8], bytes, &len].concat(),
        "zst" => [&[0x28, 0xb5, 0x2f, 0xfd, 0], bytes].concat(),
        // A form feed is an empty block of metadata.
        "br" => [&[0x0c], bytes].concat(),
        _ => bytes.to_vec(),
    }
}
