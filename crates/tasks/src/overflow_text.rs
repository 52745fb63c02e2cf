//! The report of an overflow, formatted without allocating: a signal handler writes it.

#![expect(unsafe_code, reason = "a signal handler may only write by the system call")]

use crate::limits::LABEL_BYTES_MAX;

const BEFORE_LABEL: &[u8] = b"shearwater: coroutine ";
const BEFORE_SIZE: &[u8] = b" has overflowed its stack of ";
const BEHIND_SIZE: &[u8] = b" bytes; it needs a larger one, or less recursion\n";
const DIGITS_MAX: usize = 20;
const BYTES_MAX: usize =
    BEFORE_LABEL.len() + LABEL_BYTES_MAX + BEFORE_SIZE.len() + DIGITS_MAX + BEHIND_SIZE.len();

/// A line of text in a buffer of its own.
pub(crate) struct Text {
    bytes: [u8; BYTES_MAX],
    len: usize,
}

impl Text {
    pub(crate) fn overflow(label: &str, stack_bytes: usize) -> Self {
        let mut text = Self { bytes: [0; BYTES_MAX], len: 0 };
        text.push(BEFORE_LABEL);
        text.push(&label.as_bytes()[..label.len().min(LABEL_BYTES_MAX)]);
        text.push(BEFORE_SIZE);
        text.push_number(stack_bytes);
        text.push(BEHIND_SIZE);
        text
    }

    /// Writes it to standard error by one call. Errors are ignored.
    pub(crate) fn print(&self) {
        // SAFETY: the buffer has `len` bytes.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }

    fn push(&mut self, bytes: &[u8]) {
        for (to, from) in self.bytes[self.len..].iter_mut().zip(bytes) {
            *to = *from;
            self.len += 1;
        }
    }

    fn push_number(&mut self, mut number: usize) {
        let mut digits = [0; DIGITS_MAX];
        let mut at = DIGITS_MAX;
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_label_and_size() {
        let text = Text::overflow("/reports/{year}", 65_536);
        let expected = "shearwater: coroutine /reports/{year} has overflowed its stack of 65536 bytes; it needs a larger one, or less recursion\n";
        assert_eq!(&text.bytes[..text.len], expected.as_bytes());
    }

    #[test]
    fn any_size_and_any_label_have_room() {
        for number in [0, 9, 10, usize::MAX] {
            let text = Text::overflow(&"x".repeat(LABEL_BYTES_MAX + 1), number);
            let line = std::str::from_utf8(&text.bytes[..text.len]).unwrap();
            assert!(line.contains(&format!(" {number} bytes")) && line.ends_with('\n'), "{line}");
            assert_eq!(line.matches('x').count(), LABEL_BYTES_MAX, "the rest is left out");
        }
    }
}
