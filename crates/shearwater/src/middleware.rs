//! Steps that run before and after handlers, each for all paths under a prefix.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use shearwater_engine::{GuardsPassed, Request, Response};

use crate::path::{Parents, covers, normal, normalized};

pub(crate) type Before = Box<dyn Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync>;
pub(crate) type After = Box<dyn Fn(&Request<'_>, &mut Response<'_>) + Send + Sync>;

/// All steps of an app.
#[derive(Default)]
pub(crate) struct Middleware {
    guards: Vec<Scoped<Before>>,
    before: Vec<Scoped<Before>>,
    after: Vec<Scoped<After>>,
}

struct Scoped<T> {
    prefix: String,
    step: T,
}

/// Indices of the steps that run for an exact path.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    guards: Vec<usize>,
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Steps {
    pub(crate) fn is_empty(&self) -> bool {
        self.guards.is_empty() && self.before.is_empty() && self.after.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }
}

impl Middleware {
    pub(crate) fn push_guard(&mut self, prefix: String, guard: Before) {
        self.guards.push(Scoped { prefix, step: guard });
    }

    pub(crate) fn push_before(&mut self, prefix: String, step: Before) {
        self.before.push(Scoped { prefix, step });
    }

    pub(crate) fn push_after(&mut self, prefix: String, step: After) {
        self.after.push(Scoped { prefix, step });
    }

    /// Sorts the steps into execution order: guards and `before` from outer to inner scopes in the order of their addition,
    /// `after` in reverse.
    pub(crate) fn sort(&mut self) {
        self.guards.sort_by_key(|guard| guard.prefix.len());
        self.before.sort_by_key(|step| step.prefix.len());
        self.after.reverse();
        self.after.sort_by_key(|step| Reverse(step.prefix.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.guards.is_empty() && self.before.is_empty() && self.after.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }

    /// Returns the steps of a path, which is known at startup.
    pub(crate) fn steps(&self, path: &[u8]) -> Steps {
        let is_covered = prefix_matcher(path, path);
        Steps {
            guards: indices(&self.guards, &is_covered),
            before: indices(&self.before, &is_covered),
            after: indices(&self.after, &is_covered),
        }
    }

    /// Runs the given guards. Returns the number passed if all let the request pass.
    pub(crate) fn run_guards(
        &self,
        steps: &Steps,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        response.guards(request, steps.guards.iter().map(|&index| &self.guards[index].step))
    }

    /// Runs the guards that match the request's path. Returns the number passed if all let it pass.
    pub(crate) fn run_matching_guards(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        let is_covered = request_matcher(request);
        let matching = self.guards.iter().filter(|guard| is_covered(&guard.prefix));
        response.guards(request, matching.map(|guard| &guard.step))
    }

    /// Runs the given steps before a handler. Returns false if one of them has ended the request.
    pub(crate) fn run_before(
        &self,
        steps: &Steps,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        steps.before.iter().all(|&index| (self.before[index].step)(request, response).is_continue())
    }

    /// Returns the given steps that run after a handler.
    pub(crate) fn after<'a>(&'a self, steps: &'a Steps) -> impl Iterator<Item = &'a After> {
        steps.after.iter().map(|&index| &self.after[index].step)
    }

    /// Runs the steps that match the request's path before a handler. Returns false if one of them has ended the request.
    pub(crate) fn run_matching_before(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        let is_covered = request_matcher(request);
        let mut matching = self.before.iter().filter(|step| is_covered(&step.prefix));
        matching.all(|before| (before.step)(request, response).is_continue())
    }

    /// Returns the steps that match the request's path and run after a handler.
    pub(crate) fn matching_after(&self, request: &Request<'_>) -> impl Iterator<Item = &After> {
        let is_covered = request_matcher(request);
        self.after.iter().filter(move |step| is_covered(&step.prefix)).map(|step| &step.step)
    }
}

fn request_matcher<'a>(request: &Request<'a>) -> impl Fn(&str) -> bool {
    let head = request.head();
    prefix_matcher(head.path_bytes(), head.sent_path_bytes())
}

/// Returns a test for prefixes of a path. Tests it both as it is and decoded, so that encoding doesn't evade a guard; and
/// with the dot segments that were sent, because a mounted service of another framework gets them.
fn prefix_matcher(path: &[u8], sent: &[u8]) -> impl Fn(&str) -> bool {
    let normal = normal(path);
    let with_dots = (sent != path).then(|| normalized(sent, Parents::Keep));
    move |prefix| {
        let is_in = |path: &Option<Vec<u8>>| matches!(path, Some(path) if covers(prefix, path));
        covers(prefix, path) || is_in(&normal) || is_in(&with_dots) || covers(prefix, sent)
    }
}

fn indices<T>(all: &[Scoped<T>], is_covered: impl Fn(&str) -> bool) -> Vec<usize> {
    let covered = all.iter().enumerate().filter(|(_, step)| is_covered(&step.prefix));
    covered.map(|(index, _)| index).collect()
}
