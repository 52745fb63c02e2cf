//! Accepting: queues of connections that the worker has not yet seen.

use super::conn::SimConnection;
use super::kernel::Kernel;
use super::listeners::{AcceptState, SimArrival};
use super::operations::OperationKind;
use super::options::Fault;
use crate::limits::ACCEPTS_PER_TURN_MAX;
use crate::{AcceptError, Event};

impl Kernel {
    pub(super) fn is_listener_ready(&self, index: usize, turn: u64) -> bool {
        let Some(listener) = self.listeners.all.get(index) else { return false };
        let accepted = if listener.turn == turn { listener.accepted } else { 0 };
        let free = listener.held_until_ms <= self.clock_ms && listener.idle_turn != turn;
        let may_close = listener.is_leaving && listener.queue.is_empty();
        let queued = listener.death.is_some()
            || (!listener.queue.is_empty() && accepted < ACCEPTS_PER_TURN_MAX)
            || (may_close && self.listeners.state == AcceptState::Open);
        match self.listeners.state {
            AcceptState::Open => queued && free,
            AcceptState::Paused => queued && free && listener.taken > 0,
            // The first listener reports that all are closed.
            AcceptState::Stopping => free && (queued || (index == 0 && self.listeners.is_over())),
            AcceptState::StoppingPaused | AcceptState::Stopped => false,
        }
    }

    pub(super) fn accept_pause(&mut self) {
        self.listeners.inbox.hold();
        match self.listeners.state {
            AcceptState::Open => {
                self.listeners.state = AcceptState::Paused;
                self.take_before_pause();
            }
            AcceptState::Stopping => self.listeners.state = AcceptState::StoppingPaused,
            AcceptState::Paused | AcceptState::StoppingPaused | AcceptState::Stopped => {}
        }
    }

    /// Chooses by the seed which queued connections were accepted just before the pause: at most
    /// [`ACCEPTS_PER_TURN_MAX`] in total.
    fn take_before_pause(&mut self) {
        let room =
            if self.is_full() { 0 } else { self.options.connections_max + self.uncounted - self.connections };
        let mut left = ACCEPTS_PER_TURN_MAX.min(room);
        for listener in &mut self.listeners.all {
            let taken = self.rng.chance(self.options.accepts_after_pause);
            listener.taken = if taken { listener.queue.len().min(left) } else { 0 };
            left -= listener.taken;
        }
    }

    pub(super) fn accept_resume(&mut self) {
        self.listeners.release_inbox(self.is_full());
        match self.listeners.state {
            AcceptState::Paused => self.listeners.state = AcceptState::Open,
            AcceptState::StoppingPaused => self.listeners.state = AcceptState::Stopping,
            AcceptState::Open | AcceptState::Stopping | AcceptState::Stopped => {}
        }
    }

    pub(super) fn accept_stop(&mut self) {
        if self.listeners.state != AcceptState::Stopped {
            self.listeners.state = AcceptState::Stopping;
            self.listeners.release_inbox(self.is_full());
            self.listeners.inbox.note_wake();
        }
    }

    /// Runs one operation of a listener.
    pub(super) fn step_listener(&mut self, index: usize) -> Option<Event> {
        if !self.is_listener_ready(index, self.turn) {
            return None;
        }
        if let Some(errno) = self.listeners.all[index].death.take() {
            self.operation(OperationKind::AcceptFail, None, false);
            return Some(Event::ListenerFailed { listener: self.listeners.all[index].id, errno });
        }
        if self.listeners.all[index].queue.is_empty() && self.listeners.state == AcceptState::Open {
            return self.report_removed(index);
        }
        if self.listeners.all[index].queue.is_empty() {
            // Only the first listener is ready with an empty queue, at the end.
            return self.report_stopped();
        }
        if self.listeners.all[index].taken == 0
            && let Some(error) = self.accept_error()
        {
            return Some(self.fail_accept(error));
        }
        let fault = self.operation(OperationKind::Accept, None, !self.listeners.all[index].deferred);
        if self.defer_listener(index, fault) {
            return None;
        }
        self.take_from_queue(index, fault)
    }

    fn is_full(&self) -> bool {
        self.connections - self.uncounted >= self.options.connections_max || self.limit.is_full()
    }

    fn accept_error(&mut self) -> Option<AcceptError> {
        const ERRORS: [AcceptError; 3] =
            [AcceptError::ProcessDescriptors, AcceptError::SystemFiles, AcceptError::Memory];
        if self.is_full() {
            return Some(AcceptError::ProcessDescriptors);
        }
        let drawn = self.rng.chance(self.options.accept_errors).then(|| ERRORS[self.rng.below(3)]);
        self.listeners.failures.pop_front().or(drawn)
    }

    fn fail_accept(&mut self, error: AcceptError) -> Event {
        self.operation(OperationKind::AcceptFail, None, false);
        self.listeners.inbox.hold();
        self.listeners.state = match self.listeners.state {
            AcceptState::Stopping => AcceptState::StoppingPaused,
            _ => AcceptState::Paused,
        };
        for listener in &mut self.listeners.all {
            listener.taken = 0;
        }
        Event::AcceptFailed { error }
    }

    fn report_removed(&mut self, index: usize) -> Option<Event> {
        let fault = self.operation(OperationKind::AcceptStop, None, false);
        if self.defer_listener(index, fault) {
            return None;
        }
        let listener = &mut self.listeners.all[index];
        (listener.is_leaving, listener.is_gone) = (false, true);
        Some(Event::ListenerRemoved { listener: listener.id })
    }

    fn report_stopped(&mut self) -> Option<Event> {
        let fault = self.operation(OperationKind::AcceptStop, None, false);
        if self.defer_listener(0, fault) {
            return None;
        }
        self.listeners.state = AcceptState::Stopped;
        Some(Event::AcceptStopped)
    }

    fn defer_listener(&mut self, index: usize, fault: Option<Fault>) -> bool {
        let until = if fault == Some(Fault::Delay) { self.delayed_until_ms() } else { 0 };
        let listener = &mut self.listeners.all[index];
        listener.deferred = matches!(fault, Some(Fault::Eagain | Fault::Delay));
        match fault {
            Some(Fault::Eagain) => listener.idle_turn = self.turn,
            Some(Fault::Delay) => listener.held_until_ms = until,
            _ => {}
        }
        listener.deferred
    }

    fn take_from_queue(&mut self, index: usize, fault: Option<Fault>) -> Option<Event> {
        let turn = self.turn;
        let listener = &mut self.listeners.all[index];
        let (SimArrival { wire, address }, id) = listener.queue.pop_front()?;
        if listener.turn != turn {
            (listener.turn, listener.accepted) = (turn, 0);
        }
        listener.accepted += 1;
        listener.taken = listener.taken.saturating_sub(1);
        self.listeners.release_emptied_inbox();
        let token = self.insert(|token| SimConnection::new(token, wire, address));
        // Rst and Fin: the queue has connections that their peers closed long ago.
        self.apply_fault(token.slot(), fault);
        self.enqueue(token.slot());
        Some(Event::Accepted { token, listener: id })
    }
}
