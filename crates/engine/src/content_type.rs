//! The `Content-Type` line, at most one per response (RFC 9110 section 8.3).

use crate::response::encode_field;

pub(crate) const NAME: &str = "Content-Type";

/// A predefined line, or one built from the handler's value.
#[derive(Default)]
pub(crate) struct ContentType {
    usual: Option<&'static [u8]>,
    /// Line built last; most responses repeat it.
    built: Vec<u8>,
    /// The current response uses `built`.
    is_built: bool,
}

impl ContentType {
    /// Returns the line including its end, or an empty slice.
    #[inline]
    pub(crate) fn line(&self) -> &[u8] {
        match self.usual {
            Some(usual) => usual,
            None if self.is_built => &self.built,
            None => &[],
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.usual = None;
        self.is_built = false;
    }

    /// Sets a predefined, valid line.
    #[inline]
    pub(crate) fn set_line(&mut self, line: &'static [u8]) {
        self.usual = Some(line);
    }

    /// Sets the value.
    ///
    /// # Errors
    /// The reason why the value is invalid. There is no line then.
    pub(crate) fn set(&mut self, value: &[u8]) -> Result<(), String> {
        self.clear();
        if self.built_value() != Some(value) {
            self.built.clear();
            encode_field(&mut self.built, NAME, value)?;
        }
        self.is_built = true;
        Ok(())
    }

    /// Returns the value of the line that was built last.
    fn built_value(&self) -> Option<&[u8]> {
        const BEFORE: usize = NAME.len() + b": ".len();
        self.built.get(BEFORE..)?.strip_suffix(b"\r\n")
    }

    /// Frees the built line if it is larger than `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if self.built.capacity() > bytes {
            self.clear();
            self.built = Vec::new();
        }
    }
}

/// Returns true if `name` is `Content-Type`. Nearly all callers use one of two spellings.
#[inline]
pub(crate) fn is_name(name: &str) -> bool {
    matches!(name, "content-type" | NAME) || name.eq_ignore_ascii_case(NAME)
}

#[cfg(test)]
mod tests {
    use super::{ContentType, is_name};

    #[test]
    fn the_last_one_holds_whatever_was_there_before() {
        let mut place = ContentType::default();
        for value in ["a/b", "a/b", "", "a/b; c=d", "a/b", "text/plain"] {
            assert_eq!(place.line(), b"");
            place.set(value.as_bytes()).expect("a value");
            assert_eq!(place.line(), format!("Content-Type: {value}\r\n").as_bytes());
            place.set_line(b"Content-Type: x/y\r\n");
            assert_eq!(place.line(), b"Content-Type: x/y\r\n");
            place.clear();
        }
    }

    #[test]
    fn what_is_no_value_leaves_nothing() {
        let mut place = ContentType::default();
        for bad in ["a\r\nb: c", "a\0", "\r\n"] {
            place.set(b"a/b").expect("a value");
            for _ in 0..2 {
                assert!(place.set(bad.as_bytes()).is_err());
                assert_eq!(place.line(), b"");
            }
        }
    }

    #[test]
    fn a_long_one_is_not_kept() {
        let mut place = ContentType::default();
        place.set(&[b'a'; 100]).expect("a value");
        place.shrink_to(64);
        assert!(place.line().is_empty() && place.built.capacity() <= 64);
        place.set(b"a/b").expect("a value");
        place.shrink_to(64);
        assert_eq!(place.line(), b"Content-Type: a/b\r\n");
    }

    #[test]
    fn its_name_is_known_in_every_spelling() {
        for (name, expected) in [
            ("content-type", true),
            ("Content-Type", true),
            ("CONTENT-type", true),
            ("content-typo", false),
            ("", false),
        ] {
            assert_eq!(is_name(name), expected, "{name:?}");
        }
    }
}
