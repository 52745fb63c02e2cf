//! Polls deferred handlers: when their tasks are woken, and after sends.

use shearwater_io::{Driver, Token};
use shearwater_tasks::{Polled, TaskId};

use crate::connection::Flag;
use crate::exchange::id::ExchangeId;
use crate::exchange::{Exchange, State};
use crate::limits::TASKS_PER_TURN_MAX;
use crate::response::facts::Disposition;
use crate::response::fault::Fault;
use crate::server::panics;
use crate::server::reports::named;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::request_loop::StepResult;
use crate::worker::state::WorkerState;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Polls each ready task once, up to [`TASKS_PER_TURN_MAX`]. Those that become ready meanwhile are polled in the next
    /// turn.
    #[inline]
    pub(crate) fn run_tasks(&mut self) {
        let tasks = &self.state.calls.tasks;
        // A dropped task may still have a wake-up pending.
        if !tasks.is_empty() || tasks.ready() > 0 || !self.state.calls.clock.timers.is_empty() {
            self.run_ready();
        }
    }

    fn run_ready(&mut self) {
        let calls = &mut self.state.calls;
        calls.clock.timers.expire();
        calls.tasks.collect();
        let ready = calls.tasks.ready().min(TASKS_PER_TURN_MAX);
        if ready > 0 {
            self.state.counters.task_turns.add(1);
            self.state.counters.tasks_ready.add(ready as u64);
        }
        for _ in 0..ready {
            let Some(task) = self.state.calls.tasks.next() else { return };
            self.run_task(task);
        }
    }

    fn run_task(&mut self, task: TaskId) {
        let state = &mut self.state;
        let Some(tag) = state.calls.tasks.tag(task) else { return };
        let exchange = state.exchanges.get(ExchangeId(tag));
        let exchange = exchange.filter(|exchange| exchange.task == Some(task) || exchange.is_coded_by(task));
        if let Some((token, id)) =
            exchange.as_ref().filter(|of| of.stream.is_some()).map(|of| (of.token, of.id))
        {
            return self.run_stream(token, id, task);
        }
        let Some((token, is_coder)) = exchange.map(|of| (of.token, of.task != Some(task))) else {
            // The response is complete; a future that runs beyond it is a task without an exchange.
            let tasks = &mut state.calls.tasks;
            if let Err(panic) = panics::catch(|| tasks.poll(task)) {
                state.faulty(Fault::Panic(panic));
            }
            return;
        };
        if is_coder {
            state.run_coder(token, task);
            return self.flush(token);
        }
        match state.run_handler(token, false) {
            StepResult::Passed => self.resume_with(token, WorkerState::begin_anew),
            _ => self.flush(token),
        }
    }

    /// Sends what a handler has responded meanwhile, after a send.
    pub(crate) fn continue_after_send(&mut self, token: Token) {
        let result = self.state.advance_after_send(token);
        self.state.table.get(token).restart_deadline();
        match result {
            StepResult::Passed => self.resume_with(token, WorkerState::begin_anew),
            _ => self.flush(token),
        }
    }
}

impl<S: Service> WorkerState<S> {
    /// Polls a connection's handler and encodes its output. `is_followed` means that more input has arrived after the
    /// request and isn't stored yet.
    pub(crate) fn run_handler(&mut self, token: Token, is_followed: bool) -> StepResult {
        let Some(mut exchange) = self.take_exchange(token) else { return StepResult::Waits };
        self.poll(&mut exchange);
        self.advance(exchange, is_followed)
    }

    /// Moves what the coder of a stream has encoded, and sends it.
    #[cold]
    fn run_coder(&mut self, token: Token, task: TaskId) {
        let Some(mut exchange) = self.take_exchange(token) else { return };
        self.poll_coder(&mut exchange, task);
        exchange.shared().wake_writer();
        self.advance(exchange, false);
    }

    /// Polls the task that moves what a coder has encoded.
    pub(crate) fn poll_coder(&mut self, exchange: &mut Exchange, task: TaskId) {
        let tasks = &mut self.calls.tasks;
        if let Err(mut panic) = panics::catch(|| tasks.poll(task)) {
            panic.request = Some(named(&exchange.shared().head()));
            exchange.fault = Some(Box::new(Fault::Panic(panic)));
        }
    }

    /// Lets a handler that waits for the client write again, and encodes what it has written.
    pub(crate) fn advance_after_send(&mut self, token: Token) -> StepResult {
        let Some(exchange) = self.take_exchange(token) else { return StepResult::Waits };
        match exchange.state() {
            State::Handling | State::Sending => {
                exchange.shared().wake_writer();
                self.advance(exchange, false)
            }
            // An upgrade has no handler any more.
            _ => {
                self.keep_exchange(exchange);
                StepResult::Waits
            }
        }
    }

    /// Encodes a handler's output unless a send is in flight, and ends a response that is complete.
    pub(crate) fn advance(&mut self, mut exchange: Box<Exchange>, is_followed: bool) -> StepResult {
        let token = exchange.token;
        let conn = self.table.get(token);
        // Only one send at a time: further output waits for its end.
        if conn.has(Flag::Sending) {
            self.keep_exchange(exchange);
            return StepResult::Waits;
        }
        if exchange.passed_guards().is_some() {
            self.keep_exchange(exchange);
            return StepResult::Passed;
        }
        exchange.facts.is_followed = is_followed || self.busy.has_input(conn.busy);
        match self.pump(&mut exchange) {
            None => {
                self.note_output(token, None);
                self.send_continue(&mut exchange);
                self.keep_exchange(exchange);
                StepResult::Waits
            }
            // The rest of the body is never read, so no request can follow it.
            Some(disposition) if exchange.body.is_some() && disposition != Disposition::Truncated => {
                self.end_response(exchange, Disposition::Last)
            }
            Some(disposition) => self.end_response(exchange, disposition),
        }
    }

    /// Polls the handler.
    pub(crate) fn poll(&mut self, exchange: &mut Exchange) {
        exchange.is_new = false;
        let Some(task) = exchange.task else { return };
        let tasks = &mut self.calls.tasks;
        let polled = panics::catch(|| tasks.poll(task));
        if self.calls.is_blocked() {
            self.calls.name_block(&exchange.shared().head());
        }
        match polled {
            Err(mut panic) => {
                panic.request = Some(named(&exchange.shared().head()));
                exchange.fault = Some(Box::new(Fault::Panic(panic)));
            }
            Ok(Polled::Ready) if !exchange.shared().is_over() => {
                let why = "a handler has ended without dropping its call";
                exchange.fault = Some(Box::new(Fault::Built(why.to_owned())));
            }
            Ok(Polled::Ready | Polled::Pending | Polled::Gone) => {}
        }
    }

    /// Sends `100 Continue` once the handler reads the body, whose time starts then.
    pub(crate) fn send_continue(&mut self, exchange: &mut Exchange) {
        let (is_wanted, has_begun) = (exchange.shared().is_wanted(), exchange.state() == State::Sending);
        let Some(body) = exchange.body.as_mut().filter(|body| body.owes_continue && is_wanted) else {
            return;
        };
        body.owes_continue = false;
        body.restart(&self.body_rate_rule, self.now_ms);
        if !has_begun {
            self.responder.append_continue();
        }
    }
}
