//! Requests rejected by the server itself: statuses, limits and texts.

use shearwater_http1::{Head, Method, ParseError, Target};
use shearwater_io::Token;

use crate::connection::Phase;
use crate::exchange::State;
use crate::response::responder::Disposition;
use crate::server::counters::{Counter, Counters};
use crate::server::notice::Notice;
use crate::service::Service;
use crate::worker::observing::Source;
use crate::worker::request_loop::{Step, StepResult};
use crate::worker::state::WorkerState;

/// The reason why a request is rejected without a handler's response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// Malformed request.
    Rejected(ParseError),
    /// `CONNECT`: this is an origin server (RFC 9110 section 9.3.6).
    Connect,
    /// The target's scheme needs another connection (RFC 9110 section 7.4).
    Misdirected,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation,
    /// The body is larger than allowed (RFC 9110 section 15.5.14).
    BodyTooLarge,
    /// The worker's buffers are full.
    BuffersFull,
    /// The request took too long (RFC 9110 section 15.5.9).
    Timeout,
    /// The client sent a FIN in the middle of it (RFC 9112 section 8).
    Incomplete,
    /// Too many requests are deferred.
    CallsFull,
    /// A panic outside of the response handler.
    Panicked,
}

impl Refusal {
    /// Returns the status of the response.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Rejected(reject) => reject.status(),
            Self::Connect => 501,
            Self::Misdirected => 421,
            Self::Expectation => 417,
            Self::BodyTooLarge => 413,
            Self::BuffersFull | Self::CallsFull => 503,
            Self::Timeout => 408,
            Self::Incomplete => 400,
            Self::Panicked => 500,
        }
    }

    /// Returns the counter of the limit that caused it. Timeouts are counted where they expire.
    pub(crate) fn limit(self, counters: &Counters) -> Option<&Counter> {
        Some(match self {
            Self::Rejected(ParseError::HeadTooLarge) => &counters.hit_head_bytes,
            Self::Rejected(ParseError::TargetTooLong) => &counters.hit_target_bytes,
            Self::Rejected(ParseError::TooManyFields) => &counters.hit_fields,
            Self::Rejected(ParseError::MethodTooLong) => &counters.hit_method_bytes,
            Self::Rejected(ParseError::ChunkLineTooLong) => &counters.hit_chunk_line_bytes,
            Self::Rejected(ParseError::TrailersTooLarge) => &counters.hit_trailer_bytes,
            Self::Rejected(ParseError::TooManyTrailers) => &counters.hit_trailers,
            Self::BodyTooLarge => &counters.hit_body_bytes,
            Self::BuffersFull => &counters.hit_buffered_bytes,
            Self::CallsFull => &counters.hit_calls,
            _ => return None,
        })
    }

    /// Returns a sentence for the client.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Rejected(reject) => reject.to_string(),
            Self::Connect => "CONNECT is not implemented: this is no proxy.".to_owned(),
            Self::Misdirected => "The scheme of the target is not served on this connection.".to_owned(),
            Self::Expectation => "The only expectation known here is 100-continue.".to_owned(),
            Self::BodyTooLarge => "The body is larger than allowed here.".to_owned(),
            Self::BuffersFull => "Too many large requests at once. Try again later.".to_owned(),
            Self::Timeout => "The request took too long to arrive.".to_owned(),
            Self::Incomplete => "The request ended in the middle.".to_owned(),
            Self::CallsFull => "Too many requests are in progress. Try again later.".to_owned(),
            Self::Panicked => "Internal Server Error".to_owned(),
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Rejects the unfinished request of a connection with the last response.
    pub(crate) fn refuse(&mut self, token: Token, refusal: Refusal) -> Step {
        self.refuse_as(token, refusal, Source::Connection)
    }

    /// Rejects a request with the connection's last response. That to a `HEAD` has no body.
    #[cold]
    pub(crate) fn refuse_as(&mut self, token: Token, refusal: Refusal, source: Source<'_>) -> Step {
        if self.has_begun(token) {
            return self.cut_off(token, refusal);
        }
        self.counters.requests_refused.add(1);
        self.counters.count_class(refusal.status());
        self.count_limit(refusal);
        let is_head = self.is_head_request(token, source);
        self.responder.refuse(refusal.status(), &refusal.sentence(), is_head);
        self.note_response(token, source, refusal.status());
        self.cancel(token);
        self.end_request(token, Disposition::Last);
        Step::new(0, StepResult::Refused)
    }

    /// Returns true if a request is a `HEAD`.
    pub(crate) fn is_head_request(&mut self, token: Token, source: Source<'_>) -> bool {
        match source {
            Source::Parsed(head) => self.parser.head(head).method() == Method::Head,
            Source::Head(head) => head.method() == Method::Head,
            Source::Line(input) => Method::is_head_begun(input),
            Source::Aside { is_head } => is_head,
            Source::Connection => {
                let conn = self.table.get(token);
                if conn.phase() == Phase::Head {
                    return self
                        .busy
                        .get_mut(conn.busy)
                        .is_some_and(|busy| Method::is_head_begun(&busy.input));
                }
                self.exchange(token).is_some_and(|exchange| exchange.facts.method == Method::Head)
            }
        }
    }

    /// Returns true if a part of a deferred response has been sent or queued.
    pub(crate) fn has_begun(&mut self, token: Token) -> bool {
        self.exchange(token).is_some_and(|exchange| exchange.state() == State::Sending)
    }

    /// Counts the limit that caused a refusal, and reports it if it is the server's own memory.
    fn count_limit(&mut self, refusal: Refusal) {
        if matches!(refusal, Refusal::BuffersFull) {
            self.count_full_buffers();
        } else if let Some(limit) = refusal.limit(&self.counters) {
            limit.add(1);
        }
    }

    /// Truncates a response in progress, because its request can't be rejected any more.
    fn cut_off(&mut self, token: Token, refusal: Refusal) -> Step {
        self.cancel(token);
        self.count_limit(refusal);
        self.note_output(token, Some(Disposition::Truncated));
        self.end_request(token, Disposition::Truncated);
        Step::new(0, StepResult::Refused)
    }

    /// Rejects a partial head if the buffers are full and no larger connection can be evicted.
    pub(crate) fn refuse_if_full(&mut self, token: Token) {
        if self.table.get(token).phase() == Phase::Head && !self.make_room(token) {
            self.refuse(token, Refusal::BuffersFull);
        }
    }

    /// Reports the worker's first rejected body that is longer than the limit.
    pub(crate) fn report_body_limit(&mut self) {
        if !self.is_body_limit_reported {
            self.is_body_limit_reported = true;
            let (worker, bytes_max) = (self.worker, self.limits.body_bytes_max);
            self.notify(Notice::BodyTooLarge { worker, bytes_max });
        }
    }

    /// Returns the refusal of a target in a rare form, if it is rejected.
    #[cold]
    pub(crate) fn refused_target(&self, token: Token, head: &Head<'_>) -> Option<Refusal> {
        match head.target() {
            Target::Authority { .. } => Some(Refusal::Connect),
            Target::Absolute { scheme, .. } => {
                // A trusted proxy may have terminated TLS.
                let is_proxied = || self.proxies.as_ref().is_some_and(|proxies| proxies.is_proxied(token));
                let is_served = scheme.eq_ignore_ascii_case("http")
                    || scheme.eq_ignore_ascii_case("https") && is_proxied();
                (!is_served).then_some(Refusal::Misdirected)
            }
            Target::Origin { .. } | Target::Asterisk => None,
        }
    }
}
