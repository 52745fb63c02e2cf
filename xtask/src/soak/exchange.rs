//! A request with the answer that it has to get, in two forms: on a connection that stays, and with `Connection: close`.

use std::net::SocketAddr;

use super::expected::Expected;
use crate::harness::answer::Fault;
use crate::harness::client::Client;
use crate::harness::trouble::Outcome;

/// A request, and what is known beforehand of its answer.
#[derive(Debug)]
pub(super) struct Draft {
    /// Method and target, such as `GET /`.
    pub(super) line: String,
    /// Further field lines, each with its line end.
    pub(super) fields: String,
    /// The body as it is sent, with chunk framing if there is any.
    pub(super) body: Vec<u8>,
    /// The status of the answer.
    pub(super) status: u16,
    /// The body of the answer.
    pub(super) answer: Vec<u8>,
    /// Further field lines that the answer has to have.
    pub(super) has: Vec<(&'static str, String)>,
}

/// A request with its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    /// On a connection that stays.
    pub(super) staying: Form,
    /// With `Connection: close`.
    pub(super) closing: Form,
}

/// One form of an exchange.
#[derive(Debug)]
pub(super) struct Form {
    /// The request as it is sent.
    pub(super) request: Vec<u8>,
    /// The answer as it has to come.
    pub(super) answer: Expected,
}

impl Draft {
    /// A request without body for an answer without further fields.
    pub(super) fn new(line: &str, status: u16, answer: &[u8]) -> Self {
        let (line, answer) = (line.to_owned(), answer.to_vec());
        Self { line, fields: String::new(), body: Vec::new(), status, answer, has: Vec::new() }
    }

    /// Asks the server once in each form, and takes its answers as the ones to come after having checked what is known of them.
    pub(super) fn learn(&self, address: SocketAddr) -> Outcome<Exchange> {
        let explain = |fault: Fault| format!("first answer to {:?} {:?}: {fault}", self.line, self.fields);
        let staying = self.learn_form(address, false).map_err(explain)?;
        let closing = self.learn_form(address, true).map_err(explain)?;
        Ok(Exchange { staying, closing })
    }

    fn learn_form(&self, address: SocketAddr, close: bool) -> Result<Form, Fault> {
        let Self { line, fields, body, .. } = self;
        let option = if close { "Connection: close\r\n" } else { "" };
        let head = format!("{line} HTTP/1.1\r\nHost: soak.test\r\n{fields}{option}\r\n");
        let request = [head.as_bytes(), body].concat();
        let mut client = Client::open(address)?;
        let answer = client.exchange(&request, line.starts_with("HEAD "))?;
        let head = answer.head;
        let fields_right = self.has.iter().all(|(name, value)| head.field(name) == Some(value));
        if head.status != self.status || head.announces_close() != close || !fields_right {
            return Err(Fault::Malformed(head.text));
        }
        if answer.body != self.answer {
            return Err(Fault::Malformed(format!("another body of {} bytes", answer.body.len())));
        }
        if close {
            client.end()?;
        }
        let answer = Expected::new(&head.text, &answer.body).map_err(Fault::Malformed)?;
        Ok(Form { request, answer })
    }
}
