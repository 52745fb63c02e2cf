//! A model of the test app: the responses to arbitrary bytes, which `http1` parses one at a time, without the engine.

use shearwater_engine::Limits;
use shearwater_engine::http1::{
    BodyDecoder, BodyEvent, BodyLimits, Expectation, Framing, Head, HeadLimits, HeadParser, Method,
    ParseError, Parsed, Target, Version,
};

use crate::harness::app::{BUFFER_BYTES_MAX, text_of};
use crate::harness::conversation::is_head;
use crate::harness::{ExpectedResponse, Unit};

/// Routes whose responses depend on more than method, target and body.
const NOT_MODELLED: &str = "status field value prebuilt peer big file short-file policy-panics";

/// Routes with deferred or faulty handlers: some never respond.
const DEFERRED: &str = "\
    later taken mirror unread hungry at-once stream announced cut later-panics never background \
    pulled pulled-refuses pulled-panics pulled-ends-in-panic loyal loyal-taken bad-field-stream begins-and-panics flood forgets-sleep lets-go make-panics \
    prebuilt-stream speaks-first keep finish twice";

/// Returns the requests at the start of `raw`, up to the first that the model doesn't cover.
pub(crate) fn units(raw: &[u8], limits: &Limits) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut rest = raw;
    while let Some(unit) = next_unit(rest, limits, units.is_empty()) {
        rest = &rest[unit.bytes.len()..];
        let is_end = unit.is_last || unit.decided_at > unit.bytes.len();
        units.push(unit);
        if is_end {
            break;
        }
    }
    units
}

fn next_unit(rest: &[u8], limits: &Limits, is_first: bool) -> Option<Unit> {
    // After a request a lone line end is no partial head: the harness can't express that for a part of a unit.
    if rest.is_empty() || (!is_first && rest[0] == b'\r') {
        return None;
    }
    let mut parser = HeadParser::new(HeadLimits {
        head_bytes_max: limits.head_bytes_max,
        target_bytes_max: limits.target_bytes_max,
        fields_max: limits.fields_max,
    });
    let result =
        |len: usize| Some((len, parser.parse(&rest[..len]))).filter(|(_, it)| *it != Ok(Parsed::Partial));
    match (1..=rest.len()).find_map(result) {
        None => Some(undecided(rest)),
        Some((len, Err(reject))) => Some(rejected(rest, len, reject)),
        Some((len, Ok(_))) => Request::new(parser.head(&rest[..len]), rest).unit(limits),
    }
}

/// Returns a request that stays partial.
fn undecided(rest: &[u8]) -> Unit {
    Unit { decided_at: rest.len() + 1, ..Unit::new(rest, ExpectedResponse::incomplete()) }
}

fn rejected(rest: &[u8], at: usize, reject: ParseError) -> Unit {
    let response = ExpectedResponse::refusal(status_line(reject.status()), &reject.to_string());
    Unit::refused(rest, at, if is_head(rest) { response.bodyless() } else { response })
}

fn status_line(status: u16) -> &'static str {
    match status {
        400 => "400 Bad Request",
        414 => "414 URI Too Long",
        431 => "431 Request Header Fields Too Large",
        501 => "501 Not Implemented",
        505 => "505 HTTP Version Not Supported",
        _ => panic!("{status} is not among the statuses of a refusal"),
    }
}

/// The end of a body.
enum End {
    Whole,
    Partial,
    Rejected(ParseError),
}

/// A request with a complete head.
struct Request<'a> {
    head: Head<'a>,
    /// The head and all bytes after it.
    rest: &'a [u8],
    route: &'a str,
}

impl<'a> Request<'a> {
    fn new(head: Head<'a>, rest: &'a [u8]) -> Self {
        let route = head.path().split('/').nth(1).unwrap_or_default();
        Self { head, rest, route }
    }

    /// Returns the request and its response, if the model covers it.
    fn unit(&self, limits: &Limits) -> Option<Unit> {
        let head = &self.head;
        if head.method() == Method::Connect {
            let why = "CONNECT is not implemented: this is no proxy.";
            return Some(self.refused(head.len(), ExpectedResponse::refusal("501 Not Implemented", why)));
        }
        if let Target::Absolute { scheme, .. } = head.target()
            && !scheme.eq_ignore_ascii_case("http")
        {
            let why = "The scheme of the target is not served on this connection.";
            return Some(self.refused(head.len(), ExpectedResponse::refusal("421 Misdirected Request", why)));
        }
        if head.expectation() == Expectation::Unknown {
            let why = "The only expectation known here is 100-continue.";
            return Some(self.refused(head.len(), ExpectedResponse::refusal("417 Expectation Failed", why)));
        }
        if [NOT_MODELLED, DEFERRED]
            .iter()
            .flat_map(|routes| routes.split(' '))
            .any(|route| route == self.route)
        {
            return None;
        }
        let framing = head.framing();
        if framing == Framing::None {
            return Some(self.responded(head.len(), b""));
        }
        // A `100` depends on when the body arrives; the end of a partial body, on the method HEAD.
        if head.expectation() != Expectation::None || head.method() == Method::Head {
            return None;
        }
        let buffered_max = if self.route == "buffer" { BUFFER_BYTES_MAX } else { u64::MAX };
        match framing {
            Framing::Length(len) if len > limits.body_bytes_max.min(buffered_max) => {
                Some(self.refused(head.len(), ExpectedResponse::too_large()))
            }
            _ => Some(self.with_body(framing)),
        }
    }

    fn with_body(&self, framing: Framing) -> Unit {
        let (len, content, end) = self.walk(framing);
        let at = self.head.len() + len;
        match end {
            End::Partial => undecided(self.rest),
            End::Rejected(reject) => rejected(self.rest, at, reject),
            End::Whole => self.responded(at, &content),
        }
    }

    /// Decodes the body byte by byte: its length, content and end.
    fn walk(&self, framing: Framing) -> (usize, Vec<u8>, End) {
        let bytes = &self.rest[self.head.len()..];
        let mut decoder = BodyDecoder::new(framing, BodyLimits::default());
        let mut content = Vec::new();
        let mut at = 0;
        while !decoder.is_done() {
            let Some(byte) = bytes.get(at..=at) else { return (at, content, End::Partial) };
            at += 1;
            match decoder.decode(byte) {
                Err(reject) => return (at, content, End::Rejected(reject)),
                Ok(step) => {
                    if let BodyEvent::Data(data) = step.event {
                        content.extend_from_slice(data);
                    }
                }
            }
        }
        (at, content, End::Whole)
    }

    /// Returns a rejection after `at` bytes; the client may send more.
    fn refused(&self, at: usize, response: ExpectedResponse) -> Unit {
        Unit::refused(self.rest, at, self.for_method(response))
    }

    /// Returns the app's response to a request of `len` bytes.
    fn responded(&self, len: usize, content: &[u8]) -> Unit {
        let seen = if self.route == "buffer" { content } else { b"" };
        let response = match self.route {
            "panic" | "half-panic" => ExpectedResponse::failed(),
            "empty" => ExpectedResponse::bytes(b""),
            _ => ExpectedResponse::text(
                "200 OK",
                text_of(self.head.method_name(), self.head.target_str(), seen),
            ),
        };
        let response = match self.head.version() {
            _ if !self.head.keep_alive() || self.route == "close" => response.last(),
            Version::Http10 if response.connection.is_none() => response.connection("keep-alive"),
            Version::Http10 | Version::Http11 | Version::Http2 => response,
        };
        let response = self.for_method(response);
        match response.connection {
            Some("close") => Unit::refused(self.rest, len, response),
            _ => Unit::new(&self.rest[..len], response),
        }
    }

    fn for_method(&self, response: ExpectedResponse) -> ExpectedResponse {
        if self.head.method() == Method::Head { response.bodyless() } else { response }
    }
}
