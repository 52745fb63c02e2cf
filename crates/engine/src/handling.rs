//! Verb 5, handle: polls deferred handlers after the turn's events.

use shearwater_io::{Driver, Token};
use shearwater_tasks::TaskId;

use crate::connection::Flag;
use crate::panics;
use crate::respond::Fault;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Polls each ready task once. Those that become ready meanwhile are polled in the next turn.
    #[inline]
    pub(crate) fn run_tasks(&mut self) {
        let tasks = &self.state.calls.tasks;
        // A dropped task may still have a wake-up pending.
        if !tasks.is_empty() || tasks.ready() > 0 || !self.state.calls.timers.is_empty() {
            self.run_ready();
        }
    }

    fn run_ready(&mut self) {
        let calls = &mut self.state.calls;
        calls.timers.expire();
        calls.tasks.collect();
        let ready = calls.tasks.ready();
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
        let Some(token) = state.calls.token_of(task) else { return };
        if state.task_of(token) != Some(task) {
            // Its response is complete; the task continues on its own.
            let tasks = &mut state.calls.tasks;
            if let Err(panic) = panics::catch(|| tasks.poll(task)) {
                state.faulty(Fault::Panic(panic));
            }
            return;
        }
        state.run_call(token, false);
        self.advance(token);
    }

    /// Sends the output of a handler that was polled.
    fn advance(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        // A response without a body may end without further output.
        let is_over = !conn.is_handled() && !conn.has(Flag::Sending);
        match is_over && self.state.responder.out.is_empty() {
            true => self.output_sent(token),
            false => self.flush(token),
        }
    }

    /// Resumes a handler after a send.
    pub(crate) fn resume_handler(&mut self, token: Token) {
        self.state.resume_call(token);
        self.state.table.get(token).restart_deadline();
        self.advance(token);
    }
}
