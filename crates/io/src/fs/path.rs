//! What a path must be before it is shown to the kernel.

use super::OpenError;
use super::limits::PATH_BYTES_MAX;

/// Refuses what no path below a root can be: absolute ones, `..` anywhere, NUL, and those too long. Everything else is
/// the kernel's business: `a//b` and `a/./b` are `a/b`, a slash at the end asks for a directory, a backslash is an
/// ordinary byte.
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
