//! The last messages to the operator, for programs that show them elsewhere than on standard error.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_KEPT_MAX};

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

impl Messages {
    /// Keeps a message: see [`Control::keep_message`](crate::Control::keep_message).
    pub(crate) fn keep(&self, level: MessageLevel, mut text: String) {
        if text.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('\u{2026}');
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_seconds = now.map_or(0, |since| since.as_secs());
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(Message { unix_seconds, level, text });
        if messages.len() > MESSAGES_KEPT_MAX {
            let oldest = (0..messages.len()).min_by_key(|index| Reverse(messages[*index].level));
            oldest.into_iter().for_each(|index| drop(messages.remove(index)));
        }
    }

    /// Returns all of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Message> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_KEPT_MAX};
    use crate::server::messages::MessageLevel;
    use crate::server::messages::Messages;

    #[test]
    fn keeps_the_last_messages() {
        let messages = Messages::default();
        for number in 0..MESSAGES_KEPT_MAX + 5 {
            messages.keep(MessageLevel::Warning, number.to_string());
        }
        let texts: Vec<_> = messages.all().into_iter().map(|message| message.text).collect();
        let expected: Vec<_> = (5..MESSAGES_KEPT_MAX + 5).map(|number| number.to_string()).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn evicts_the_oldest_message_of_the_lowest_level() {
        let messages = Messages::default();
        messages.keep(MessageLevel::Error, "failure".to_owned());
        messages.keep(MessageLevel::Info, "news".to_owned());
        for number in 2..MESSAGES_KEPT_MAX + 2 {
            messages.keep(MessageLevel::Warning, number.to_string());
        }
        let texts: Vec<_> = messages.all().into_iter().map(|message| message.text).collect();
        let last = (3..MESSAGES_KEPT_MAX + 2).map(|number| number.to_string());
        let expected: Vec<_> = ["failure".to_owned()].into_iter().chain(last).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_warning_evicts_no_failure() {
        let messages = Messages::default();
        for number in 0..MESSAGES_KEPT_MAX {
            messages.keep(MessageLevel::Error, number.to_string());
        }
        messages.keep(MessageLevel::Warning, "warning".to_owned());
        assert_eq!(messages.all()[0].text, "0");
        assert!(messages.all().iter().all(|message| message.level == MessageLevel::Error));
        messages.keep(MessageLevel::Error, "failure".to_owned());
        assert_eq!(messages.all()[0].text, "1");
    }

    #[test]
    fn cuts_long_messages_between_characters() {
        let messages = Messages::default();
        messages.keep(MessageLevel::Error, "ä".repeat(MESSAGE_BYTES_MAX));
        let text = &messages.all()[0].text;
        assert!(text.len() <= MESSAGE_BYTES_MAX + '\u{2026}'.len_utf8() && text.ends_with("ä\u{2026}"));
    }
}
