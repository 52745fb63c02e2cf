//! An exchange: a request and its response, from the complete head to the end of the response.
//!
//! A response that is ready at once makes none: its exchange is the call stack.
//!
//! | state | meaning | next | body | output | deadline |
//! |---|---|---|---|---|---|
//! | `Reading` | its body is received before the handler is called | `Handling`, `Ended` | discarded or kept | `100` | the body's |
//! | `Handling` | the handler was called, no head is sent | `Sending`, `Ended` | read by the handler, or complete | `100` | the body's, unless a `100` is owed; then that of the client's FIN |
//! | `Sending` | the head is sent, more follows | `Ended` | as in `Handling` | pieces | as in `Handling` |
//! | `Upgrading` | its `101` is on its way | `Ended` | none | none | none |
//! | `Ended` | complete, cut off or cancelled; its memory is spare | `Reading`, `Handling`, `Upgrading`: it is another exchange | none | none | none |
//!
//! Its connection is in `Body` while it has a [body reader](BodyReader), else in `Waiting`. Transitions are the methods of
//! [`Exchange`]. A handler that outlives `Ended` is a task without an exchange.

use std::rc::Rc;

use shearwater_http1::{Head, HeadParser};
use shearwater_io::Token;
use shearwater_tasks::TaskId;

use crate::connection::busy::OpenExchange;
use crate::deferred::calls::Deferred;
use crate::deferred::shared::Shared;
use crate::exchange::body::BodyReader;
use crate::exchange::table::ExchangeId;
use crate::memory::buffer::{Buffer, PagePool};
use crate::response::ResponseDraft;
use crate::response::responder::{Disposition, Fault, RequestFacts};
use crate::service::Service;
use crate::upgrade::Taker;
use crate::worker::state::WorkerState;

pub(crate) mod body;
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
    id: ExchangeId,
    pub(crate) token: Token,
    state: State,
    pub(crate) facts: RequestFacts,
    /// Receives the body, until it is complete.
    pub(crate) body: Option<BodyReader>,
    /// Head and body that are kept until the handler is called.
    parser: Option<Box<HeadParser>>,
    head: Buffer,
    kept: Buffer,
    /// Service to be called, if a reload has replaced it since.
    pub(crate) service: Option<Rc<dyn Service>>,
    shared: Option<Rc<Shared>>,
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
    /// Bytes accounted for it in the table.
    counted: usize,
}

/// Transitions. No other code assigns a state.
impl Exchange {
    fn enter(&mut self, next: State) {
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

    fn adopt(&mut self, deferred: Deferred) {
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
    fn end(&mut self, pool: &mut PagePool) -> Option<(Rc<Shared>, TaskId)> {
        if self.state == State::Ended {
            return None; // it was rejected before it began
        }
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
    }
}

/// Queries.
impl Exchange {
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

    /// Returns true if a handler is at work on it, or an upgrade is under way.
    pub(crate) fn is_handled(&self) -> bool {
        self.state != State::Reading
    }

    /// Returns true if a handler reads a body that is still being received.
    pub(crate) fn reads_body(&self) -> bool {
        self.body.is_some() && self.is_handled()
    }

    /// Returns the memory of its own and of the handler's half, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.own_bytes() + self.shared.as_ref().map_or(0, |shared| shared.held_bytes())
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

/// Exchanges of connections.
impl<S> WorkerState<S> {
    /// Returns the exchange of a connection, if one is open.
    pub(crate) fn exchange(&mut self, token: Token) -> Option<&mut Exchange> {
        let index = self.table.find(token)?.busy;
        self.open.get(self.busy.exchange(index)?)
    }

    /// Takes the exchange of a connection out of the table to work with it; `keep_exchange` or `end_exchange` must follow.
    pub(crate) fn take_exchange(&mut self, token: Token) -> Option<Box<Exchange>> {
        let index = self.table.find(token)?.busy;
        self.open.take(self.busy.take_exchange(index)?)
    }

    /// Stores the exchange of a connection, and has its task's wake-ups find it.
    pub(crate) fn keep_exchange(&mut self, exchange: Box<Exchange>) {
        let Exchange { token, task, .. } = *exchange;
        let (bytes, waits_for_client) = (exchange.held_bytes(), exchange.body.is_some());
        let id = self.open.put(exchange);
        if let Some(task) = task {
            self.calls.tasks.set_tag(task, id.0);
        }
        let conn = self.table.get(token);
        self.busy.keep_exchange(token, &mut conn.busy, OpenExchange { id, bytes, waits_for_client });
    }

    /// Has another handler respond to a request. Drops the former one unless it is done.
    pub(crate) fn change_handler(&mut self, exchange: &mut Exchange, deferred: Deferred) {
        if let Some((shared, task)) = exchange.shared.take().zip(exchange.task.take()) {
            self.calls.abandon(shared, task);
        }
        exchange.adopt(deferred);
    }

    /// Ends an exchange that was taken out of the table, and drops its handler unless that is done.
    pub(crate) fn end_exchange(&mut self, mut exchange: Box<Exchange>) {
        if let Some((shared, task)) = exchange.end(&mut self.busy.pool) {
            self.calls.abandon(shared, task);
        }
        if exchange.id != ExchangeId::NONE {
            let index = self.table.get(exchange.token).busy;
            self.busy.end_exchange(index);
        }
        self.open.recycle(exchange);
    }

    /// Ends the exchange of a connection; returns true if a part of its response has been sent or queued.
    pub(crate) fn cancel(&mut self, token: Token) -> bool {
        let Some(exchange) = self.take_exchange(token) else { return false };
        let has_begun = exchange.state == State::Sending;
        self.end_exchange(exchange);
        has_begun
    }

    /// Keeps a service that was replaced for the requests whose body it is going to get. Those of earlier services keep
    /// theirs.
    pub(crate) fn keep_service(&mut self, service: &Rc<dyn Service>) {
        for exchange in self.open.iter_mut().filter(|exchange| exchange.state == State::Reading) {
            exchange.service.get_or_insert_with(|| Rc::clone(service));
        }
    }

    /// Returns true if a deferred handler is at work on a connection's request, or an upgrade is under way.
    pub(crate) fn is_handled(&mut self, token: Token) -> bool {
        self.exchange(token).is_some_and(|exchange| exchange.is_handled())
    }

    /// Returns true if a connection's handler is to be dropped as soon as the client sends a FIN.
    pub(crate) fn ends_with_client(&mut self, token: Token) -> bool {
        let shared = self.exchange(token).and_then(|exchange| exchange.shared.as_ref());
        shared.is_some_and(|shared| shared.ends_with_client())
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
