//! Field lines of a response: encoded from names and values, and searched by name.

use shearwater_http1::encode;

pub(crate) const CONTENT_TYPE: &str = "Content-Type";

/// Fields that decide where a message ends, or that only the server knows.
const OWNED: [&str; 5] = ["Connection", "Content-Length", "Date", "Server", "Transfer-Encoding"];

pub(crate) fn append_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    if OWNED.iter().any(|owned| owned.eq_ignore_ascii_case(name)) {
        return Err(format!("a handler set {name}, which is the server's own"));
    }
    encode_field(out, name, value)?;
    // A sender of `Upgrade` must send the connection option too (RFC 9110 section 7.8).
    if name.eq_ignore_ascii_case("Upgrade") && !have_name(out, b"Connection") {
        encode::connection_upgrade(out);
    }
    Ok(())
}

/// Encodes any field, including the server's own.
pub(crate) fn encode_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    encode::field(out, name, value).map_err(|bad| format!("a handler set the field {name:?}: {bad}"))
}

/// Returns true if `name` is `Content-Type`. Nearly all callers use one of two spellings.
#[inline]
pub(crate) fn is_content_type(name: &str) -> bool {
    matches!(name, "content-type" | CONTENT_TYPE) || name.eq_ignore_ascii_case(CONTENT_TYPE)
}

/// Returns true if one of the encoded field lines has this name.
pub(crate) fn have_name(lines: &[u8], name: &[u8]) -> bool {
    each_line(lines).any(|line| name_of(line).eq_ignore_ascii_case(name))
}

/// Iterates over encoded field lines, each with its end.
pub(crate) fn each_line(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|&byte| byte == b'\n')
}

/// Returns the first encoded field line, with its end.
pub(crate) fn first_line(lines: &[u8]) -> &[u8] {
    each_line(lines).next().unwrap_or_default()
}

/// Returns the name in an encoded field line.
pub(crate) fn name_of(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
    &line[..end]
}
