//! An exchange: a request and its response, from the complete head to the end of the response.
//!
//! A response that is ready at once makes none: its exchange is the call stack.
//!
//! | state | meaning | next | body | output | deadline |
//! |---|---|---|---|---|---|
//! | `Reading` | its body is received before the handler is called | `Handling`, `Ended` | discarded or kept | `100` | the body's |
//! | `Handling` | the handler was called, no head is sent | `Sending`, `Ended` | read by the handler, or complete | `100` | the body's, unless a `100` is owed; once the body is complete, that of the client's FIN |
//! | `Sending` | the head is sent, more follows | `Ended` | as in `Handling` | pieces | as in `Handling` |
//! | `Upgrading` | its `101` is on its way | `Ended` | none | none | none |
//! | `Ended` | complete, cut off or cancelled; its memory is spare | `Reading`, `Handling`, `Upgrading`: it is another exchange | none | none | none |
//!
//! Its connection is in `Body` while it has a [body reader](BodyReader), else in `Waiting`. Transitions are the methods of
//! [`Exchange`]. A handler that outlives `Ended` is a task without an exchange.

use std::rc::Rc;

use shearwater_http1::{Head, HeadParser};
use shearwater_http2::StreamId;
use shearwater_io::Token;
use shearwater_tasks::TaskId;

use crate::deferred::calls::Deferred;
use crate::deferred::shared::Shared;
use crate::exchange::body::BodyReader;
use crate::exchange::id::ExchangeId;
use crate::memory::buffer::{Buffer, PagePool};
use crate::request::guards::GuardsPassed;
use crate::response::draft::ResponseDraft;
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::fault::Fault;
use crate::service::Service;
use crate::upgrade::Taker;

pub(crate) mod body;
pub(crate) mod id;
pub(crate) mod table;

/// States of an exchange. The module's table explains them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    Reading,
    Handling,
    Sending,
    Upgrading,
    #[default]
    Ended,
}

impl State {
    /// Returns true if the module's table has `next` after this state.
    fn allows(self, next: Self) -> bool {
        match self {
            Self::Reading => matches!(next, Self::Handling | Self::Ended),
            Self::Handling => matches!(next, Self::Sending | Self::Ended),
            Self::Sending | Self::Upgrading => next == Self::Ended,
            Self::Ended => matches!(next, Self::Reading | Self::Handling | Self::Upgrading),
        }
    }
}

/// The worker's half of an exchange; the handler's half is its [`Shared`].
#[derive(Default)]
pub(crate) struct Exchange {
    pub(crate) id: ExchangeId,
    pub(crate) token: Token,
    /// Its stream, on an HTTP/2 connection.
    pub(crate) stream: Option<StreamId>,
    state: State,
    pub(crate) facts: RequestFacts,
    /// Receives the body, until it is complete.
    pub(crate) body: Option<BodyReader>,
    /// Head and body that are kept until the handler is called.
    pub(crate) parser: Option<Box<HeadParser>>,
    pub(crate) head: Buffer,
    pub(crate) kept: Buffer,
    /// Guards that it has passed before its body is received.
    pub(crate) passed: GuardsPassed,
    /// Service to be called, if a reload has replaced it since.
    pub(crate) service: Option<Rc<dyn Service>>,
    pub(crate) shared: Option<Rc<Shared>>,
    pub(crate) task: Option<TaskId>,
    /// The handler has not been polled yet.
    pub(crate) is_new: bool,
    /// Fields and settings that the deferring response got afterwards.
    pub(crate) added: Option<Box<ResponseDraft>>,
    /// Disposition of the connection, once the response's head is encoded.
    pub(crate) disposition: Option<Disposition>,
    /// More of the response's body follows the head.
    pub(crate) has_body: bool,
    /// Fault that ended the handler before its response was complete.
    pub(crate) fault: Option<Box<Fault>>,
    /// Closure that takes over the connection once its `101` is sent.
    pub(crate) taker: Option<Taker>,
    /// Bytes accounted for it in the table; 0 if they have to be counted anew. Constant while a handler is at work.
    counted: usize,
}

/// Transitions, and what else changes it as a whole. Only [`enter`](Self::enter) assigns a state.
impl Exchange {
    pub(crate) fn enter(&mut self, next: State) {
        debug_assert!(self.state.allows(next), "{:?} after {:?}", next, self.state);
        self.state = next;
    }

    /// The handler was called: it will respond, and reads the body if that is still being received.
    pub(crate) fn handle(&mut self, deferred: Deferred, body: Option<BodyReader>, pool: &mut PagePool) {
        self.enter(State::Handling);
        self.drop_kept(pool);
        self.body = body;
        self.adopt(deferred);
    }

    pub(crate) fn adopt(&mut self, deferred: Deferred) {
        let Deferred { shared, task, is_polled, added } = deferred;
        (self.shared, self.task, self.is_new) = (Some(shared), Some(task), !is_polled);
        self.added = added;
    }

    /// The head of the response is encoded, and more follows.
    pub(crate) fn begin_sending(&mut self, disposition: Disposition) {
        self.enter(State::Sending);
        self.disposition = Some(disposition);
    }

    /// The `101` is encoded: `taker` takes over the connection once it is sent.
    pub(crate) fn upgrade(&mut self, taker: Option<Taker>) {
        self.enter(State::Upgrading);
        self.taker = taker;
    }

    /// Drops everything but a little memory. Returns the handler's half and its task.
    pub(crate) fn end(&mut self, pool: &mut PagePool) -> Option<(Rc<Shared>, TaskId)> {
        self.enter(State::Ended);
        self.drop_kept(pool);
        (self.body, self.fault, self.taker, self.disposition) = (None, None, None, None);
        (self.added, self.is_new) = (None, false);
        self.shared.take().zip(self.task.take())
    }

    fn drop_kept(&mut self, pool: &mut PagePool) {
        self.parser.iter_mut().for_each(|parser| parser.reset());
        self.head.clear(pool);
        self.kept.clear(pool);
        self.service = None;
        self.counted = 0;
    }
}

/// Queries.
impl Exchange {
    /// Returns true if the handler's queue is full.
    pub(crate) fn is_full(&self) -> bool {
        self.reads_body() && !self.shared().has_room()
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Returns the handler's half.
    ///
    /// # Panics
    /// If the handler wasn't called yet.
    pub(crate) fn shared(&self) -> &Rc<Shared> {
        self.shared.as_ref().expect("a handler is at work from `Handling` on")
    }

    /// Returns the head of its request until the response begins.
    pub(crate) fn head(&self) -> Option<Head<'_>> {
        match self.state {
            State::Reading => Some(self.parser.as_ref()?.head(&self.head)),
            State::Handling => Some(self.shared().head()),
            State::Sending | State::Upgrading | State::Ended => None,
        }
    }

    /// Returns true if this task moves what a coder has encoded of its response.
    pub(crate) fn is_coded_by(&self, task: TaskId) -> bool {
        self.shared.as_ref().and_then(|shared| shared.coder_task()) == Some(task)
    }

    /// Returns true if a part of its response has been sent or queued.
    pub(crate) fn has_begun(&self) -> bool {
        self.state == State::Sending
    }

    /// Returns true if a handler is at work on it, or an upgrade is under way.
    pub(crate) fn is_handled(&self) -> bool {
        self.state != State::Reading
    }

    /// Returns true if a handler reads a body that is still being received.
    pub(crate) fn reads_body(&self) -> bool {
        self.body.is_some() && self.is_handled()
    }

    /// Returns the number of guards that the request has passed, once it may begin anew.
    pub(crate) fn passed_guards(&self) -> Option<GuardsPassed> {
        self.shared.as_ref().filter(|_| self.fault.is_none())?.passed_guards()
    }

    /// Returns the memory that is freed once the handler is called, in bytes.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.head.held_bytes() + self.kept.held_bytes()
    }

    fn own_bytes(&self) -> usize {
        let of_parser = |parser: &HeadParser| size_of::<HeadParser>() + parser.held_bytes();
        size_of::<Self>() + self.parser.as_deref().map_or(0, of_parser) + self.kept_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    const STATES: [State; 5] =
        [State::Reading, State::Handling, State::Sending, State::Upgrading, State::Ended];

    #[test]
    fn allows_the_transitions_of_the_table() {
        let rows = include_str!("mod.rs").lines().filter(|line| line.starts_with("//! | `"));
        let rows: Vec<Vec<&str>> = rows.map(|line| line.split('|').collect()).collect();
        assert_eq!(rows.len(), STATES.len());
        for (state, row) in STATES.into_iter().zip(rows) {
            assert_eq!(row[1].trim(), format!("`{state:?}`"));
            for next in STATES {
                let is_listed = row[3].contains(&format!("`{next:?}`"));
                assert_eq!(state.allows(next), is_listed, "{next:?} after {state:?}");
            }
        }
    }
}
