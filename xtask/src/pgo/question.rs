//! A request with what its answer has to be: status, fields, body.

use testkit::{Error, Response};

/// How much of a request is shown beside a wrong answer, characters.
const SHOWN_CHARS_MAX: usize = 200;

/// A request and its answer.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// As it is sent.
    pub(super) request: Vec<u8>,
    /// Its method: a response to `HEAD` has no body.
    pub(super) method: String,
    /// The answer's status.
    pub(super) status: u16,
    /// Its body.
    pub(super) body: Vec<u8>,
    /// A field that it has to have.
    pub(super) field: Option<(&'static str, String)>,
}

impl Question {
    /// A request without body for an answer of `body`.
    pub(super) fn new(method: &str, target: &str, fields: &str, status: u16, body: &[u8]) -> Self {
        Self::with_body(&format!("{method} {target}"), fields, b"", status, body)
    }

    /// A request `line`, without its version, with a body as it goes over the wire.
    pub(super) fn with_body(line: &str, fields: &str, sent: &[u8], status: u16, body: &[u8]) -> Self {
        let head = format!("{line} HTTP/1.1\r\n{fields}\r\n");
        let request = [head.as_bytes(), sent].concat();
        let method = line.split(' ').next().unwrap_or_default().to_owned();
        Self { request, method, status, body: body.to_vec(), field: None }
    }

    /// Demands a field of the answer.
    pub(super) fn has(self, name: &'static str, value: String) -> Self {
        Self { field: Some((name, value)), ..self }
    }

    /// Compares an answer.
    pub(super) fn judge(&self, answer: &Response) -> Result<(), String> {
        let field_right = self.field.as_ref().is_none_or(|(name, value)| answer.header(name) == Some(value));
        if answer.head.status != self.status || !field_right {
            return Err(self.wrong(&format!("{:?}", answer.head.text())));
        }
        if answer.body != self.body {
            return Err(self.wrong(&format!("another body, of {} bytes", answer.body.len())));
        }
        Ok(())
    }

    /// Says which request got no answer.
    pub(super) fn failed(&self, error: &Error) -> String {
        self.wrong(&error.to_string())
    }

    fn wrong(&self, what: &str) -> String {
        let shown: String = String::from_utf8_lossy(&self.request).chars().take(SHOWN_CHARS_MAX).collect();
        format!("{shown:?}: {what}")
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Head, Response};

    use super::Question;

    #[test]
    fn status_field_and_body_have_to_be_right() {
        let question = Question::new("GET", "/", "", 200, b"body").has("etag", "\"1\"".to_owned());
        let judge = |status: u16, etag: &str, body: &[u8]| {
            let text = format!("HTTP/1.1 {status} OK\r\nETag: {etag}\r\nContent-Length: 4\r\n\r\n");
            let head = Head::parse(text.as_bytes()).expect("a head");
            question.judge(&Response { head, body: body.to_vec() })
        };
        assert_eq!(judge(200, "\"1\"", b"body"), Ok(()));
        for (status, etag, body) in
            [(404, "\"1\"", b"body"), (200, "\"2\"", b"body"), (200, "\"1\"", b"bodY")]
        {
            let wrong = judge(status, etag, body).expect_err("another answer");
            assert!(wrong.contains("GET / HTTP/1.1"), "{wrong}");
        }
    }
}
