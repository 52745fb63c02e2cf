//! The path that a request means: its target's, without dot segments (RFC 3986 5.2.4 and 6.2.2.3).
//!
//! This is the only place that resolves them, so routes, guards and files can't disagree about a path.

use super::target::{TargetForm, TargetSpans};
use crate::{Method, ParseError};

/// Sets `path` to the path of a target, at most as long or one byte; to an empty one if it is the target's own.
///
/// # Errors
/// [`ParseError::PathAboveRoot`] if it leaves the root.
#[cold]
pub(super) fn find(
    path: &mut String,
    target: &TargetSpans,
    bytes: &[u8],
    method: Method,
) -> Result<(), ParseError> {
    path.clear();
    let sent = target.path.text(bytes);
    match target.form {
        TargetForm::Absolute if sent.is_empty() => {
            // The server as a whole (RFC 9112 3.2.4).
            let is_asterisk = method == Method::Options && target.query().is_none();
            path.push(if is_asterisk { '*' } else { '/' });
            Ok(())
        }
        TargetForm::Origin | TargetForm::Absolute if sent.split('/').any(|part| dots(part) > 0) => {
            resolve(path, sent)
        }
        _ => Ok(()),
    }
}

/// Writes a path that begins with a slash, without its dot segments.
fn resolve(path: &mut String, sent: &str) -> Result<(), ParseError> {
    let mut segments = sent[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let dots = dots(segment);
        if dots == 2 {
            let parent = path.rfind('/').ok_or(ParseError::PathAboveRoot)?;
            path.truncate(parent);
        }
        if dots == 0 {
            path.push('/');
            path.push_str(segment);
        } else if segments.peek().is_none() {
            path.push('/');
        }
    }
    Ok(())
}

/// Returns the number of dots in a segment of one or two, of which each may be encoded; else 0.
fn dots(segment: &str) -> usize {
    let mut rest = segment.as_bytes();
    let mut dots = 0;
    while let [b'.', behind @ ..] | [b'%', b'2', b'e' | b'E', behind @ ..] = rest {
        rest = behind;
        dots += 1;
    }
    if rest.is_empty() && dots <= 2 { dots } else { 0 }
}
