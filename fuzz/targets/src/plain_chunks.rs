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

/// `chunk-size [ chunk-ext ]`.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, behind) = line.split_at(digits);
    let size = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    is_extensions(behind).then_some(size)
}

/// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112 section 7.1.1).
fn is_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let name = skip_blanks(rest).strip_prefix(b";").map(skip_blanks);
        let Some(behind) = name.and_then(skip_token) else { return false };
        rest = match skip_blanks(behind).strip_prefix(b"=").map(skip_blanks) {
            None => behind,
            Some(value) => match skip_token(value).or_else(|| skip_quoted_string(value)) {
                Some(behind) => behind,
                None => return false,
            },
        };
    }
    true
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..]
}

fn skip_token(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().take_while(|byte| is_token_byte(byte)).count();
    (len > 0).then(|| &text[len..])
}

fn skip_quoted_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', quoted, behind @ ..] if is_value_byte(quoted) => behind,
            [byte, behind @ ..] if *byte != b'\\' && is_value_byte(byte) => behind,
            _ => return None,
        };
    }
}

fn is_trailer(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    colon > 0 && line[..colon].iter().all(is_token_byte) && line[colon..].iter().all(is_value_byte)
}

fn is_token_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

fn is_value_byte(byte: &u8) -> bool {
    *byte == b'\t' || (*byte >= b' ' && *byte != 0x7F)
}
