//! Field lines that are encoded once and sent many times.

use crate::header_rules::have_name;
use crate::response::append_field;

/// Encoded field lines, for [`Response::lines`](crate::Response::lines).
#[derive(Debug, Clone, Default)]
pub struct FieldLines {
    bytes: Vec<u8>,
}

impl FieldLines {
    /// Returns an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field (RFC 9110 section 5).
    ///
    /// # Errors
    /// The reason why it is invalid: see [`Response::field`](crate::Response::field). Nothing is appended
    /// then.
    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<&mut Self, String> {
        append_field(&mut self.bytes, name, value.as_ref())?;
        Ok(self)
    }

    /// Returns true if one of them has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        have_name(&self.bytes, name.as_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::FieldLines;

    #[test]
    fn what_can_not_be_sent_is_not_kept() {
        let mut lines = FieldLines::new();
        lines.push("ETag", "\"1\"").expect("a field");
        assert!(lines.push("ETag", "\"1\"\r\nX: y").is_err());
        assert!(lines.push("Content-Length", "1").is_err());
        lines.push("Age", "0").expect("a field");
        assert_eq!(lines.as_bytes(), b"ETag: \"1\"\r\nAge: 0\r\n");
    }
}
