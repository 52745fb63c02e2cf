//! Conversion of response heads from the form of `http` to the engine's.
//!
//! The engine decides framing and connection handling (RFC 9110 section 7.6.1, RFC 9112 section 6):
//!
//! - `Content-Length` is used only for a body of unknown length, or one that isn't sent (`HEAD`);
//! - `Connection: close` closes the connection, and for `Upgrade` the engine sends the option `upgrade`; other options,
//!   `Keep-Alive`, `Proxy-Connection`, `Transfer-Encoding` and `Trailer` are dropped;
//! - `Date` and `Server` are set by the engine; those of the service are dropped.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use shearwater::Response;

const INTERNAL_SERVER_ERROR: u16 = 500;

/// Sets status and fields.
///
/// A status that isn't a final one (RFC 9110 section 15) becomes a 500.
pub(crate) fn set(response: &mut Response<'_>, status: StatusCode, fields: &HeaderMap) {
    response.status(final_status(status));
    for (name, value) in fields {
        match kind(name) {
            Kind::Own => {
                response.field(name.as_str(), value);
            }
            Kind::Connection => {
                if has_close(value) {
                    response.close();
                }
            }
            Kind::LeftOut => {}
        }
    }
}

/// The treatment of a field.
enum Kind {
    /// Copied.
    Own,
    Connection,
    LeftOut,
}

fn kind(name: &HeaderName) -> Kind {
    match *name {
        header::CONNECTION => Kind::Connection,
        header::CONTENT_LENGTH
        | header::DATE
        | header::SERVER
        | header::TRAILER
        | header::TRANSFER_ENCODING => Kind::LeftOut,
        _ if matches!(name.as_str(), "keep-alive" | "proxy-connection") => Kind::LeftOut,
        _ => Kind::Own,
    }
}

/// Returns the body's length in bytes from `Content-Length`, if there is exactly one and it is a number.
pub(crate) fn length(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let is_number = value.as_bytes().iter().all(u8::is_ascii_digit);
    if is_number { value.to_str().ok()?.parse().ok() } else { None }
}

fn has_close(value: &HeaderValue) -> bool {
    let options = value.as_bytes().split(|byte| *byte == b',');
    options.map(<[u8]>::trim_ascii).any(|option| option.eq_ignore_ascii_case(b"close"))
}

fn final_status(status: StatusCode) -> u16 {
    match status.as_u16() {
        status @ 200..=599 => status,
        _ => INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode, header};

    use super::{final_status, has_close, length};

    #[test]
    fn only_one_number_is_a_length() {
        for (values, expected) in [
            (&["0"][..], Some(0)),
            (&["18446744073709551615"], Some(u64::MAX)),
            (&["18446744073709551616"], None),
            (&["+1"], None),
            (&["1, 1"], None),
            (&[""], None),
            (&["1", "1"], None),
            (&[], None),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(header::CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            assert_eq!(length(&fields), expected, "{values:?}");
        }
    }

    #[test]
    fn close_is_an_option_among_others() {
        for (value, expected) in [
            ("close", true),
            ("Close", true),
            ("upgrade,  close ", true),
            ("keep-alive", false),
            ("closed", false),
            ("", false),
        ] {
            assert_eq!(has_close(&HeaderValue::from_static(value)), expected, "{value:?}");
        }
    }

    #[test]
    fn what_is_no_final_status_is_a_500() {
        for (status, expected) in
            [(100, 500), (101, 500), (199, 500), (200, 200), (299, 299), (599, 599), (600, 500), (999, 500)]
        {
            assert_eq!(
                final_status(StatusCode::from_u16(status).expect("a number of three digits")),
                expected
            );
        }
    }
}
