//! Verb 5, handle: handlers that wait go on, behind the turn's events.

use shearwater_io::{Driver, Token};
use shearwater_tasks::TaskId;

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::panics;
use crate::respond::Fault;
use crate::worker::Worker;

impl<D: Driver, A: App> Worker<D, A> {
    /// Calls each task that is ready once. Those that get ready meanwhile are called in the next turn.
    #[inline]
    pub(crate) fn run_tasks(&mut self) {
        let tasks = &self.service.calls.tasks;
        // One that was dropped may still be called for.
        if !tasks.is_empty() || tasks.ready() > 0 || !self.service.calls.timers.is_empty() {
            self.run_ready();
        }
    }

    fn run_ready(&mut self) {
        let calls = &mut self.service.calls;
        calls.timers.expire();
        calls.tasks.collect();
        let ready = calls.tasks.ready();
        if ready > 0 {
            self.service.counters.task_turns.add(1);
            self.service.counters.tasks_ready.add(ready as u64);
        }
        for _ in 0..ready {
            let Some(task) = self.service.calls.tasks.next() else { return };
            self.run_task(task);
        }
    }

    fn run_task(&mut self, task: TaskId) {
        let service = &mut self.service;
        let Some(token) = service.calls.token_of(task) else { return };
        if service.task_of(token) != Some(task) {
            // Its answer is complete: what it still does is its own.
            let tasks = &mut service.calls.tasks;
            if let Err(panic) = panics::catch(|| tasks.poll(task)) {
                service.faulty(Fault::Panic(panic));
            }
            return;
        }
        service.run_call(token, false);
        self.advance(token);
    }

    /// A handler was called: what it has said is sent.
    fn advance(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        // An answer without a body may end without a further byte.
        let is_over = !conn.is_handled() && !conn.has(Flag::Sending);
        match is_over && self.service.responder.out.is_empty() {
            true => self.go_on_reading(token),
            false => self.flush(token),
        }
    }

    /// A send has ended: the handler may say more.
    pub(crate) fn handler_goes_on(&mut self, token: Token) {
        self.service.go_on_call(token);
        let conn = self.service.table.get(token);
        match conn.phase {
            // Its body waits for the handler, not for the client.
            Phase::Taking | Phase::Exchanging if conn.has(Flag::Paused) => {
                self.service.bound_half_closed(token);
            }
            // Nothing was received meanwhile.
            Phase::Taking => self.service.body_begins_anew(token, self.driver.now_ms()),
            Phase::Exchanging => self.service.await_body(token),
            _ => self.service.bound_half_closed(token),
        }
        self.advance(token);
    }
}
