//! The one right answer to a request, asked for once: every later answer has to be the same, byte for byte apart from its date.

use std::net::SocketAddr;
use std::ops::Range;

use crate::harness::client::{Client, request};
use crate::harness::trouble::{During, Outcome};

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7).
const DATE_LENGTH: usize = 29;

/// An answer with the place of its date.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    date: Range<usize>,
}

impl Template {
    /// Asks the server for `target` and keeps the answer, whose body has to be `body`.
    pub(super) fn learn(address: SocketAddr, target: &str, body: &[u8]) -> Outcome<Self> {
        let mut client = Client::open(address).during("a first normal client")?;
        let answer = client.exchange(&request("GET", target), false).during("the first answer")?;
        if answer.head.status != 200 || answer.head.announces_close() || answer.body != body {
            return Err(format!("not the expected first answer: {:?}", answer.head.text).into());
        }
        Ok(Self::of(&answer.head.text, &answer.body))
    }

    fn of(head: &str, body: &[u8]) -> Self {
        let at = head.to_ascii_lowercase().find("\r\ndate: ").map(|at| at + 8);
        let date = at.map_or(0..0, |at| at..(at + DATE_LENGTH).min(head.len()));
        Self { bytes: [head.as_bytes(), body].concat(), date }
    }

    /// How long the answer is.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// True if `answer` is this one, whatever its date.
    pub(super) fn matches(&self, answer: &[u8]) -> bool {
        let Range { start, end } = self.date.clone();
        answer.len() == self.bytes.len()
            && answer[..start] == self.bytes[..start]
            && answer[end..] == self.bytes[end..]
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn only_the_date_may_differ() {
        let head = |date: &str| format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 2\r\n\r\n");
        let first = head("Sun, 06 Nov 1994 08:49:37 GMT");
        let template = Template::of(&first, b"ok");
        let later = head("Mon, 07 Nov 1994 08:49:38 GMT");
        assert!(template.matches(format!("{later}ok").as_bytes()));
        assert!(!template.matches(format!("{later}no").as_bytes()));
        assert!(!template.matches(format!("{}ok", later.replace("200", "500")).as_bytes()));
        assert!(!template.matches(later.as_bytes()));
    }
}
