//! Bodies read in the plainest way, with all bytes at hand: RFC 9112 section 7.1 line by line.

use shearwater_http1::BodyLimits;

/// Content, trailers and where the body ends.
pub(crate) type Body = (Vec<u8>, Vec<u8>, usize);

/// The body of `len` bytes at the start of `bytes`, if it is all there.
pub(crate) fn by_length(bytes: &[u8], len: usize) -> Option<Body> {
    Some((bytes.get(..len)?.to_vec(), Vec::new(), len))
}

/// The chunked body at the start of `bytes`, if it is whole, good and within `limits`.
pub(crate) fn chunked(bytes: &[u8], limits: &BodyLimits) -> Option<Body> {
    let mut content = Vec::new();
    let mut rest = bytes;
    loop {
        let line = take_line(&mut rest)?;
        let size = chunk_size(line).filter(|_| line.len() <= usize::from(limits.chunk_line_bytes_max))?;
        if size == 0 {
            break;
        }
        let data = rest.get(..usize::try_from(size).ok()?)?;
        content.extend_from_slice(data);
        rest = rest[data.len()..].strip_prefix(b"\r\n")?;
    }
    let mut trailers = Vec::new();
    let mut lines = 0;
    loop {
        let line = take_line(&mut rest)?;
        if line.is_empty() {
            break;
        }
        lines += 1;
        trailers.extend_from_slice(line);
        trailers.extend_from_slice(b"\r\n");
        let is_within = lines <= limits.trailers_max && trailers.len() <= limits.trailer_bytes_max as usize;
        if !is_within || !is_trailer(line) {
            return None;
        }
    }
    Some((content, trailers, bytes.len() - rest.len()))
}

/// What stands before the next CRLF.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let line = &rest[..len];
    *rest = &rest[len + 2..];
    Some(line)
}

/// Hexadecimal digits, then nothing, or blanks and a semicolon with any extension.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let text =
        std::str::from_utf8(&line[..line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count()]).ok()?;
    let behind = &line[text.len()..];
    let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let is_extension = behind.get(blanks) == Some(&b';') && behind[blanks..].iter().all(is_value_byte);
    (behind.is_empty() || is_extension).then(|| u64::from_str_radix(text, 16).ok())?
}

fn is_trailer(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    colon > 0 && line[..colon].iter().all(is_name_byte) && line[colon..].iter().all(is_value_byte)
}

fn is_value_byte(byte: &u8) -> bool {
    *byte == b'\t' || (*byte >= b' ' && *byte != 0x7F)
}
