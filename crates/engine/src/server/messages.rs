//! The last messages to the operator, for programs that show them elsewhere than on standard error.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_KEPT_MAX};
use crate::server::control::Control;

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageLevel {
    /// A failure.
    Error,
    /// Something that may need the operator.
    Warning,
    /// Normal operation.
    Info,
}

impl MessageLevel {
    /// Returns its name: `error`, `warning` or `info`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A message to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Seconds since 1970.
    pub unix_seconds: u64,
    /// Severity.
    pub level: MessageLevel,
    /// The text, cut at [`MESSAGE_BYTES_MAX`].
    pub text: String,
}

/// The last messages, the oldest first. Warnings, which clients can cause, evict no failure.
#[derive(Debug, Default)]
pub(crate) struct Messages(Mutex<Vec<Message>>);

impl Control {
    /// Keeps a message to the operator, among up to [`MESSAGES_KEPT_MAX`].
    ///
    /// Beyond it, the oldest one of the lowest level is dropped.
    pub fn keep_message(&self, level: MessageLevel, text: impl Into<String>) {
        let mut text = text.into();
        if text.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('\u{2026}');
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_seconds = now.map_or(0, |since| since.as_secs());
        let mut messages = self.messages.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(Message { unix_seconds, level, text });
        if messages.len() > MESSAGES_KEPT_MAX {
            let oldest = (0..messages.len()).min_by_key(|index| Reverse(messages[*index].level));
            oldest.into_iter().for_each(|index| drop(messages.remove(index)));
        }
    }

    /// Returns the last messages to the operator, the oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.messages.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_KEPT_MAX};
    use crate::server::control::Control;
    use crate::server::messages::MessageLevel;

    #[test]
    fn keeps_the_last_messages() {
        let (control, _notices) = Control::new();
        for number in 0..MESSAGES_KEPT_MAX + 5 {
            control.keep_message(MessageLevel::Warning, number.to_string());
        }
        let texts: Vec<_> = control.messages().into_iter().map(|message| message.text).collect();
        let expected: Vec<_> = (5..MESSAGES_KEPT_MAX + 5).map(|number| number.to_string()).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn evicts_the_oldest_message_of_the_lowest_level() {
        let (control, _notices) = Control::new();
        control.keep_message(MessageLevel::Error, "failure");
        control.keep_message(MessageLevel::Info, "news");
        for number in 2..MESSAGES_KEPT_MAX + 2 {
            control.keep_message(MessageLevel::Warning, number.to_string());
        }
        let texts: Vec<_> = control.messages().into_iter().map(|message| message.text).collect();
        let last = (3..MESSAGES_KEPT_MAX + 2).map(|number| number.to_string());
        let expected: Vec<_> = ["failure".to_owned()].into_iter().chain(last).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_warning_evicts_no_failure() {
        let (control, _notices) = Control::new();
        for number in 0..MESSAGES_KEPT_MAX {
            control.keep_message(MessageLevel::Error, number.to_string());
        }
        control.keep_message(MessageLevel::Warning, "warning");
        assert_eq!(control.messages()[0].text, "0");
        assert!(control.messages().iter().all(|message| message.level == MessageLevel::Error));
        control.keep_message(MessageLevel::Error, "failure");
        assert_eq!(control.messages()[0].text, "1");
    }

    #[test]
    fn cuts_long_messages_between_characters() {
        let (control, _notices) = Control::new();
        control.keep_message(MessageLevel::Error, "ä".repeat(MESSAGE_BYTES_MAX));
        let text = &control.messages()[0].text;
        assert!(text.len() <= MESSAGE_BYTES_MAX + '\u{2026}'.len_utf8() && text.ends_with("ä\u{2026}"));
    }
}
