//! Guards: steps that decide whether a request is served, before its body is received.
//!
//! A service runs them in [`Service::guard`](crate::Service::guard) by [`Response::guards`]. One that has to wait defers the
//! response and ends with [`Call::pass`]: the worker then begins the request anew, and skips the guards that it has passed.
//! A service runs them once more before it responds, which does something only for those that haven't run before.

use std::ops::ControlFlow;

use shearwater_http1::Framing;

use crate::deferred::call::Call;
use crate::deferred::calls::Deferral;
use crate::deferred::shared::Shared;
use crate::request::Request;
use crate::request::guards::{GuardPosition, GuardsPassed, WaitingGuard};
use crate::response::Response;
use crate::response::fault::Fault;

impl Response<'_> {
    /// Runs guards, except those that the request has passed already. Returns the number passed if all let it pass.
    ///
    /// A guard that returns `ControlFlow::Break` ends the request with the response as it is, or deferred. A deferred one that
    /// ends with [`Call::pass`] begins the request anew behind this guard. Changes of the response by a guard that lets the
    /// request pass have no effect.
    pub fn guards<G>(
        &mut self,
        request: &Request<'_>,
        guards: impl IntoIterator<Item = G>,
    ) -> Option<GuardsPassed>
    where
        G: FnOnce(&Request<'_>, &mut Response<'_>) -> ControlFlow<()>,
    {
        let GuardPosition { passed, outer, .. } = request.guards;
        let mut number = outer.0;
        for guard in guards {
            number += 1;
            if number > passed.0 && !self.passes_guard(number, request, guard) {
                return None;
            }
        }
        Some(GuardsPassed(number))
    }

    fn passes_guard(
        &mut self,
        number: u32,
        request: &Request<'_>,
        guard: impl FnOnce(&Request<'_>, &mut Response<'_>) -> ControlFlow<()>,
    ) -> bool {
        let was_new = self.draft.is_new();
        if guard(request, self).is_continue() {
            self.drop_deferral();
            if was_new {
                self.draft.clear();
            }
            return true;
        }
        if let Some(calls) = &mut self.calls
            && let Some(Deferral::Deferred(deferred)) = &mut calls.deferral
        {
            deferred.shared.wait_for_guard(number);
            // Never polled at once: a request can begin anew only when its worker has returned from it.
            if !deferred.is_polled {
                deferred.is_polled = true;
                calls.tasks.wake(deferred.task);
            }
        }
        if request.guards.is_late && self.is_deferred() && request.head().framing() != Framing::None {
            // The body would be lost when the request begins anew.
            self.drop_deferral();
            let why = "a guard waits behind a service without `guard`; help: forward `Service::guard`";
            self.draft.fault = Some(Box::new(Fault::Built(why.to_owned())));
        }
        false
    }
}

impl Call {
    /// Lets the request pass the [guard](Response::guards) that has deferred it. Without a guard, completes the response as
    /// it is.
    pub fn pass(self) {
        self.shared.pass_guard();
    }
}

impl Shared {
    /// Marks it as the wait for the guard with this number, from 1.
    pub(crate) fn wait_for_guard(&self, number: u32) {
        self.guard.set(Some(WaitingGuard { number, has_passed: false }));
    }

    /// Handler: lets the request pass the guard.
    pub(crate) fn pass_guard(&self) {
        self.guard.set(self.guard.get().map(|guard| WaitingGuard { has_passed: true, ..guard }));
    }

    /// Worker: returns the number of guards that the request has passed, once it may begin anew.
    pub(crate) fn passed_guards(&self) -> Option<GuardsPassed> {
        let passed = self.guard.get().filter(|guard| guard.has_passed && self.is_over());
        passed.map(|guard| GuardsPassed(guard.number))
    }

    /// Worker: has the request pass the guards of another service, from the first one on.
    pub(crate) fn restart_guards(&self) {
        self.guard.set(self.guard.get().map(|guard| WaitingGuard { number: 0, ..guard }));
    }
}
