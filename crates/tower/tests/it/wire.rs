//! A client that supports all framings.

use std::io::{BufRead, Read};

use crate::client::{Client, ClientResponse};

/// One connection.
pub(crate) struct Wire(pub(crate) Client);

impl Wire {
    /// Sends a request without a body, and reads the response.
    pub(crate) fn request(&mut self, method: &str, target: &str, fields: &[&str]) -> ClientResponse {
        self.0.ask(method, target, fields);
        self.response(method)
    }

    /// Sends a request with a body of known length, and reads the response.
    pub(crate) fn send_body(&mut self, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        // In one write, so that a short body arrives with its head.
        self.0.send([head.as_bytes(), body].concat());
        self.response("POST")
    }

    /// Reads a response of any framing.
    pub(crate) fn response(&mut self, method: &str) -> ClientResponse {
        let mut response = self.0.head();
        if method == "HEAD" || matches!(response.status, 100..=199 | 204 | 304) {
            return response;
        }
        response.body = match (response.field("Content-Length"), response.field("Transfer-Encoding")) {
            (Some(length), None) => self.exactly(length.parse().expect("a number")),
            (None, Some("chunked")) => self.chunks(),
            (None, None) => {
                assert_eq!(response.field("Connection"), Some("close"), "{response:?}");
                self.0.rest()
            }
            both => panic!("{both:?}"),
        };
        response
    }

    pub(crate) fn exactly(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.stream.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Reads the next chunk; empty at the end.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let mut line = String::new();
        self.0.stream.read_line(&mut line).expect("a line");
        let len = usize::from_str_radix(line.trim_end(), 16).expect("a size");
        let bytes = self.exactly(len);
        assert_eq!(self.exactly(2), b"\r\n");
        bytes
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match self.chunk() {
                chunk if chunk.is_empty() => return all,
                chunk => all.extend_from_slice(&chunk),
            }
        }
    }
}
