//! The path that a request means: its target's, without dot segments (RFC 3986 5.2.4 and 6.2.2.3).
//!
//! This is the only place that resolves them, so routes, guards and files can't disagree about a path.

use super::target::{TargetForm, TargetSpans};
use crate::{Method, ParseError};

/// A longer path's buffer is freed before the next request.
const PATH_BYTES_KEPT_MAX: usize = 256;

/// A path that isn't the text of its target. Reuses its buffer.
#[derive(Debug, Default)]
pub(super) struct OtherPath {
    /// Empty if the path is the target's own. Never longer than the target, or one byte.
    text: String,
}

impl OtherPath {
    /// Returns the path, unless it is the target's own.
    #[inline]
    pub(super) fn get(&self) -> Option<&str> {
        (!self.text.is_empty()).then_some(&*self.text)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity()
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.text.is_empty() {
            self.text.clear();
            self.text.shrink_to(PATH_BYTES_KEPT_MAX);
        }
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.text.clone_from(&other.text);
    }

    /// Finds the path of a target.
    ///
    /// # Errors
    /// [`ParseError::PathAboveRoot`] if it leaves the root.
    #[cold]
    pub(super) fn find(
        &mut self,
        target: &TargetSpans,
        bytes: &[u8],
        method: Method,
    ) -> Result<(), ParseError> {
        self.clear();
        let path = target.path.text(bytes);
        match target.form {
            TargetForm::Absolute if path.is_empty() => {
                // The server as a whole (RFC 9112 3.2.4).
                let is_asterisk = method == Method::Options && target.query().is_none();
                self.text.push(if is_asterisk { '*' } else { '/' });
            }
            TargetForm::Origin | TargetForm::Absolute if path.split('/').any(|part| dots(part) > 0) => {
                self.resolve(path)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes the dot segments of a path that begins with a slash.
    fn resolve(&mut self, path: &str) -> Result<(), ParseError> {
        let mut segments = path[1..].split('/').peekable();
        while let Some(segment) = segments.next() {
            let dots = dots(segment);
            if dots == 2 {
                let parent = self.text.rfind('/').ok_or(ParseError::PathAboveRoot)?;
                self.text.truncate(parent);
            }
            if dots == 0 {
                self.text.push('/');
                self.text.push_str(segment);
            } else if segments.peek().is_none() {
                self.text.push('/');
            }
        }
        Ok(())
    }
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
