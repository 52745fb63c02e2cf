//! Responses to requests that the server rejects itself.

use crate::connection::{Flag, Phase};
use crate::request::DriverView;
use crate::request::refusal::{Protocol, Refusal};
use crate::response::facts::Disposition;
use crate::response::fault::Fault;
use crate::server::notice::Notice;
use crate::service::Service;
use crate::worker::ledger_events::Source;
use crate::worker::request_loop::{Step, StepResult};
use crate::worker::state::WorkerState;
use shearwater_http1::{Expectation, Head, HeadParser, Method, ParseError, Target};
use shearwater_http2::Preface;
use shearwater_io::Token;

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
        self.count_refused(refusal);
        let is_head = self.is_head_request(token, source);
        self.responder.refuse(refusal.status(), &refusal.sentence(), is_head);
        self.note_response(token, source, refusal.status());
        self.cancel(token);
        self.end_request(token, Disposition::Last);
        Step::new(0, StepResult::Refused)
    }

    /// Begins HTTP/2 if its preface is what the parser takes for a malformed head, and the client may begin with it.
    #[cold]
    pub(crate) fn begin_http2_or_refuse(
        &mut self,
        parser: &mut HeadParser,
        token: Token,
        error: ParseError,
        input: &[u8],
    ) -> Step {
        let may_begin = self.http2.options.prior_knowledge && self.table.get(token).has(Flag::Fresh);
        match Preface::of(input) {
            Preface::Complete if may_begin => {
                self.begin_http2(token, false);
                self.queue(token);
                Step::new(0, StepResult::Waits)
            }
            Preface::Partial if may_begin => {
                parser.reset();
                self.keep_head(parser, token, input)
            }
            _ => self.refuse_line(token, error, input),
        }
    }

    /// Rejects a malformed head. One of another protocol is reported, too: a client has the wrong port, or a proxy the
    /// wrong setting.
    #[cold]
    pub(crate) fn refuse_line(&mut self, token: Token, error: ParseError, input: &[u8]) -> Step {
        let refusal = match Protocol::of(input) {
            Some(protocol) => {
                self.report(Fault::OtherProtocol(protocol));
                Refusal::OtherProtocol(protocol)
            }
            None => Refusal::Rejected(error),
        };
        self.refuse_as(token, refusal, Source::Line(input))
    }

    /// Returns true if a request is a `HEAD`.
    pub(crate) fn is_head_request(&mut self, token: Token, source: Source<'_>) -> bool {
        match source {
            Source::Head(head) => head.method() == Method::Head,
            Source::Line(input) => Method::is_head_begun(input),
            Source::Aside { is_head } => is_head,
            Source::Connection => {
                if let Some(exchange) = self.exchange(token) {
                    return exchange.facts.method == Method::Head;
                }
                let index = self.table.get(token).busy;
                self.busy.get_mut(index).is_some_and(|busy| Method::is_head_begun(&busy.input))
            }
        }
    }

    /// Returns true if a part of a deferred response has been sent or queued.
    pub(crate) fn has_begun(&mut self, token: Token) -> bool {
        self.exchange(token).is_some_and(|exchange| exchange.has_begun())
    }

    /// Counts a request that is rejected.
    pub(crate) fn count_refused(&mut self, refusal: Refusal) {
        self.counters.requests_refused.add(1);
        self.counters.count_class(refusal.status());
        self.count_limit(refusal);
    }

    /// Counts the limit that caused a refusal, and reports it if it is the server's own memory.
    pub(crate) fn count_limit(&mut self, refusal: Refusal) {
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
        if self.table.get(token).phase() == Phase::Head && !self.make_memory_room(token) {
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

    /// Returns the refusal of a complete head, if it is rejected.
    #[inline(always)]
    pub(crate) fn refused_head(
        &self,
        token: Token,
        head: &Head<'_>,
        driver: &dyn DriverView,
    ) -> Option<Refusal> {
        if !head.is_origin_form()
            && let Some(refusal) = self.refused_target(token, head, driver)
        {
            return Some(refusal);
        }
        if self.checks_hosts && !driver.serves_host(token, head.host()) {
            return Some(Refusal::OtherPolicy);
        }
        (head.expectation() == Expectation::Unknown).then_some(Refusal::Expectation)
    }

    /// Returns the refusal of a target in a rare form, if it is rejected.
    #[cold]
    pub(crate) fn refused_target(
        &self,
        token: Token,
        head: &Head<'_>,
        driver: &dyn DriverView,
    ) -> Option<Refusal> {
        match head.target() {
            Target::Authority { .. } => Some(Refusal::Connect),
            Target::Absolute { scheme, .. } => {
                let is_secured = driver.is_secured(token);
                // A trusted proxy may have terminated TLS.
                let is_proxied = || self.proxies.as_ref().is_some_and(|proxies| proxies.is_proxied(token));
                let is_served = match scheme.eq_ignore_ascii_case("https") {
                    true => is_secured || is_proxied(),
                    false => scheme.eq_ignore_ascii_case("http") && !is_secured,
                };
                (!is_served).then_some(Refusal::Misdirected)
            }
            Target::Origin { .. } | Target::Asterisk => None,
        }
    }
}
