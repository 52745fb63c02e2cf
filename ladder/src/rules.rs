//! The rules of HTTP that all rungs apply: which response a request gets, and how long its body is.
//!
//! Rungs differ in how they find a request's words and lines. They pass them to [`Rules`] as they find them.

use crate::wire::BODY_BYTES_MAX;

/// The response to a request, and the length of the body to discard before it.
#[derive(Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head_only: bool,
    pub(crate) keep_alive: bool,
    pub(crate) body_bytes: u64,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
}

/// The facts of a head that matter.
pub(crate) struct Rules {
    reply: Reply,
    is_http11: bool,
    hosts: usize,
    lengths: usize,
    has_coding: bool,
    /// The first refusal that isn't about the head's form.
    refusal: Option<u16>,
}

impl Rules {
    /// Reads a request line's words, or returns the status to refuse them with.
    pub(crate) fn new(method: &str, target: &str, version: &str) -> Result<Self, u16> {
        if !is_token(method) || target.is_empty() || !is_text(target) {
            return Err(400);
        }
        let is_http11 = version == "HTTP/1.1";
        if !is_http11 && version != "HTTP/1.0" {
            return Err(if version.starts_with("HTTP/") { 505 } else { 400 });
        }
        let path = target.split('?').next().unwrap_or_default();
        // The second path is that of public benchmarks.
        let status = if path == "/" || path == "/plaintext" { 200 } else { 404 };
        let reply = Reply {
            status,
            head_only: method == "HEAD",
            keep_alive: is_http11,
            body_bytes: 0,
            expects_continue: false,
        };
        Ok(Self { reply, is_http11, hosts: 0, lengths: 0, has_coding: false, refusal: None })
    }

    /// Reads a header, or returns the status to refuse it with.
    pub(crate) fn header(&mut self, name: &str, value: &str) -> Result<(), u16> {
        if !is_token(name) || !is_text(value) {
            return Err(400);
        }
        let value = value.trim_matches([' ', '\t']);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("host") {
            self.hosts += 1;
        } else if is("content-length") {
            self.lengths += 1;
            match content_length(value)? {
                length if length <= BODY_BYTES_MAX => self.reply.body_bytes = length,
                _ => self.refusal = Some(413),
            }
        } else if is("transfer-encoding") {
            self.has_coding = true;
        } else if is("connection") {
            let mut options = value.split(',').map(str::trim);
            self.reply.keep_alive &= !options.any(|option| option.eq_ignore_ascii_case("close"));
        } else if is("expect") && self.is_http11 {
            self.reply.expects_continue = true;
            if !value.eq_ignore_ascii_case("100-continue") {
                self.refusal = self.refusal.or(Some(417));
            }
        }
        Ok(())
    }

    /// Returns the response to a whole head, or the status to refuse it with.
    pub(crate) fn reply(self) -> Result<Reply, u16> {
        // Two opinions on a body's length are an attack (RFC 9112, section 6.1).
        let is_ambiguous = self.lengths > 1 || (self.lengths == 1 && self.has_coding);
        if is_ambiguous || self.hosts > 1 || (self.is_http11 && self.hosts == 0) {
            return Err(400);
        }
        // Bodies in chunks aren't supported.
        let refusal = if self.has_coding { Some(411) } else { self.refusal };
        refusal.map_or(Ok(self.reply), Err)
    }
}

/// Returns true for a method or a header's name (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_valid)
}

/// Returns true for text without control characters, of which only the tab is allowed.
fn is_text(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
}

fn content_length(text: &str) -> Result<u64, u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Ok(text.parse().unwrap_or(u64::MAX)) } else { Err(400) }
}
