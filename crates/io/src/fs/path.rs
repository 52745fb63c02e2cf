//! Checks of a path before it reaches the kernel.

use super::OpenError;
use super::limits::PATH_BYTES_MAX;

/// Rejects invalid paths below a root: absolute ones, `..` anywhere, NUL, and too long ones. The kernel
/// interprets the rest: `a//b` and `a/./b` are `a/b`, a trailing slash asks for a directory, a backslash is
/// an ordinary byte.
pub(super) fn check(path: &[u8]) -> Result<(), OpenError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(OpenError::NameTooLong);
    }
    if path.contains(&0) {
        return Err(OpenError::NotFound);
    }
    if path.first() == Some(&b'/') || path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(OpenError::Escapes);
    }
    Ok(())
}
