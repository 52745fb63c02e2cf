//! What a router knows of a request beyond what was sent: parameters of the route, the program's state, where a mount begins.

use std::any::{Any, TypeId, type_name};
use std::borrow::Cow;
use std::rc::Rc;

/// What stands behind [`Request::param`](crate::Request::param), [`Request::state`](crate::Request::state) and their like: the router's to
/// implement, and to lay over a request by [`Request::within`](crate::Request::within).
pub trait Context {
    /// The value of a parameter of the route, as it was sent.
    fn param(&self, name: &str) -> Option<&str>;

    /// How many bytes at the start of the target's path lead to the mount that answers; 0 where none does.
    fn mount_len(&self) -> usize;

    /// What all workers share of this type.
    fn state(&self, of: TypeId) -> Option<&dyn Any>;

    /// What this worker has of this type.
    fn local(&self, of: TypeId) -> Option<&dyn Any>;

    /// Returns true if any route of the program has an extension method of this name.
    fn knows_method(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The same for a handler that answers [later](crate::Response::later): it has to own what this borrows. `None` where there is nothing that
    /// a handler could ask for.
    fn kept(&self) -> Option<Rc<dyn Context>> {
        None
    }
}

/// The state of a type that `get` finds.
///
/// # Panics
/// Where there is none.
#[track_caller]
pub(crate) fn state_of<'a, T: 'static>(found: Option<&'a dyn Any>, kind: &str) -> &'a T {
    match found.and_then(|any| any.downcast_ref()) {
        Some(found) => found,
        None => panic!("the app has no {kind} of type {}", type_name::<T>()),
    }
}

/// Decodes percent-encoding, once (RFC 3986 section 2.1); `None` where it is none, or no UTF-8 comes of it.
pub(crate) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = text.find('%') else { return Some(Cow::Borrowed(text)) };
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend_from_slice(&text.as_bytes()[..first]);
    let mut rest = &text.as_bytes()[first..];
    while let [byte, behind @ ..] = rest {
        let (decoded, behind) = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => (digit(*high)? << 4 | digit(*low)?, behind),
            (b'%', _) => return None,
            _ => (*byte, behind),
        };
        bytes.push(decoded);
        rest = behind;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn percent_encoding_is_decoded_once_or_refused() {
        for (sent, expected) in [
            ("", Some("")),
            ("plain-text_~", Some("plain-text_~")),
            ("a%20b", Some("a b")),
            ("%2f%2F", Some("//")),
            ("%2541", Some("%41")),
            ("%C3%BC", Some("ü")),
            ("%00", Some("\0")),
            ("a+b", Some("a+b")),
            ("%", None),
            ("a%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
            ("%C3", None),
        ] {
            assert_eq!(decoded(sent).as_deref(), expected, "{sent}");
        }
    }
}
