//! Positions of requests in the guards of a service and of those around it.

use crate::request::Request;

/// Number of guards that a request has passed, from the outermost service on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuardsPassed(pub(crate) u32);

/// Position of a request in the guards of nested services.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GuardPosition {
    /// Guards that it has passed.
    pub(crate) passed: GuardsPassed,
    /// Guards of the services around the one that has the request.
    pub(crate) outer: GuardsPassed,
    /// Its body is received already, or being received.
    pub(crate) is_late: bool,
}

/// A guard that has deferred its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingGuard {
    /// Its number among the guards of the request, from 1: that of the guards passed along with it.
    pub(crate) number: u32,
    pub(crate) has_passed: bool,
}

impl GuardPosition {
    /// Returns that of a request that is responded to.
    #[inline(always)]
    pub(crate) fn late(passed: GuardsPassed) -> Self {
        Self { passed, outer: GuardsPassed(0), is_late: true }
    }
}

impl<'a> Request<'a> {
    /// Returns the same request for an inner service, behind the `outer` guards. The request has passed `all`, those of the
    /// inner service included.
    #[must_use]
    pub fn behind(&self, outer: GuardsPassed, all: GuardsPassed) -> Request<'a> {
        self.at(GuardPosition { outer, passed: all, ..self.guards })
    }

    /// Returns the same request for the guards of an inner service, behind the `outer` ones.
    #[must_use]
    pub fn after_guards(&self, outer: GuardsPassed) -> Request<'a> {
        self.at(GuardPosition { outer, ..self.guards })
    }

    /// Returns the position behind the guards of the services around, for a service without guards.
    #[must_use]
    pub fn guards_outside(&self) -> GuardsPassed {
        self.guards.outer
    }
}
