//! Where a message ends (RFC 9112 6). This file alone decides it, for requests and for responses.

use crate::fields::FieldTable;
use crate::{Known, Method, Reject, Version, class};

/// How a request's body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// This many bytes follow (`Content-Length`); may be 0.
    Length(u64),
    /// Chunks follow (`Transfer-Encoding: chunked`).
    Chunked,
}

impl Framing {
    /// The framing of the request with these fields. Anything that two readers could understand differently is refused.
    #[inline]
    pub(crate) fn of_request(bytes: &[u8], fields: &FieldTable, version: Version) -> Result<Self, Reject> {
        let length = fields.first(Known::ContentLength);
        if fields.first(Known::TransferEncoding).is_some() {
            // RFC 9112 6.1: both at once may be an attempt at request smuggling.
            if length.is_some() {
                return Err(Reject::TransferEncodingAndContentLength);
            }
            return Self::of_transfer_encoding(bytes, fields, version);
        }
        match length {
            None => Ok(Self::None),
            // RFC 9112 6.3 would let equal lengths pass; whoever sends two has already confused somebody.
            Some(_) if fields.is_repeated(Known::ContentLength) => Err(Reject::DuplicateContentLength),
            Some(field) => {
                decimal(field.value.bytes(bytes)).map(Self::Length).ok_or(Reject::InvalidContentLength)
            }
        }
    }

    /// `chunked` and nothing else, over all `Transfer-Encoding` lines together.
    fn of_transfer_encoding(bytes: &[u8], fields: &FieldTable, version: Version) -> Result<Self, Reject> {
        if version == Version::Http10 {
            return Err(Reject::TransferEncodingInHttp10);
        }
        let mut other = false;
        let mut chunked = false;
        for line in fields.all(Known::TransferEncoding) {
            for element in line.value.bytes(bytes).split(|&byte| byte == b',') {
                let (name, has_parameters) = coding(class::trim_blanks(element))?;
                let is_chunked = name.eq_ignore_ascii_case(b"chunked");
                if is_chunked && (chunked || has_parameters) {
                    return Err(Reject::InvalidTransferEncoding);
                }
                if chunked {
                    return Err(Reject::ChunkedNotLast);
                }
                chunked |= is_chunked;
                other |= !is_chunked;
            }
        }
        // Without chunked at the end nobody can tell where the body ends: that outweighs an unknown coding (RFC 9112 6.3).
        match (chunked, other) {
            (false, _) => Err(Reject::ChunkedNotLast),
            (true, true) => Err(Reject::UnknownTransferCoding),
            (true, false) => Ok(Self::Chunked),
        }
    }
}

/// The name of a transfer coding, and whether parameters follow it.
fn coding(element: &[u8]) -> Result<(&[u8], bool), Reject> {
    let semicolon = element.iter().position(|&byte| byte == b';');
    let name = class::trim_blanks(&element[..semicolon.unwrap_or(element.len())]);
    match class::is_token(name) {
        true => Ok((name, semicolon.is_some())),
        false => Err(Reject::InvalidTransferEncoding),
    }
}

/// 1*DIGIT below 2^64: no sign, no space, no list (RFC 9110 8.6).
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a response with this status to this method is followed by a body (RFC 9112 6.3): not after HEAD, not with 1xx, 204 and 304,
/// not with a 2xx to CONNECT. Fields that describe a body may be sent all the same where [`content_length_allowed`] says so.
#[must_use]
pub fn response_has_body(method: Method, status: u16) -> bool {
    method != Method::Head && status_has_body(status) && !is_tunnel(method, status)
}

/// Whether responses with this status have a body at all: not 1xx, 204 and 304 (RFC 9110 6.4.1). A 205 has one, and it must be
/// empty (RFC 9110 15.3.6): send `Content-Length: 0`.
#[must_use]
pub fn status_has_body(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}

/// Whether a response may have `Content-Length` or `Transfer-Encoding`: never with 1xx and 204, nor with a 2xx to CONNECT
/// (RFC 9110 8.6, RFC 9112 6.1). With HEAD and 304 a `Content-Length` tells what GET would have sent.
#[inline]
#[must_use]
pub fn content_length_allowed(method: Method, status: u16) -> bool {
    if status == 200 {
        // What most answers are.
        return method != Method::Connect;
    }
    !matches!(status, 100..=199 | 204) && !is_tunnel(method, status)
}

#[inline]
fn is_tunnel(method: Method, status: u16) -> bool {
    method == Method::Connect && matches!(status, 200..=299)
}
