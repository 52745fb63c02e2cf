//! What runs before and after handlers, each for all that lies beneath a prefix.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use shearwater_engine::{Request, Response};

use crate::normal_path::normal;
use crate::pattern::covers;

pub(crate) type Before = Box<dyn Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync>;
pub(crate) type After = Box<dyn Fn(&Request<'_>, &mut Response<'_>) + Send + Sync>;

/// All of it.
#[derive(Default)]
pub(crate) struct Middleware {
    before: Vec<Scoped<Before>>,
    after: Vec<Scoped<After>>,
}

struct Scoped<T> {
    prefix: String,
    step: T,
}

/// The steps around the requests of an exact path, by number.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Steps {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

impl Middleware {
    pub(crate) fn push_before(&mut self, prefix: String, step: Before) {
        self.before.push(Scoped { prefix, step });
    }

    pub(crate) fn push_after(&mut self, prefix: String, step: After) {
        self.after.push(Scoped { prefix, step });
    }

    /// Puts the steps into the order in which they run: from the outer scopes inwards and in the order in which they were given, then
    /// back the same way.
    pub(crate) fn settle(&mut self) {
        self.before.sort_by_key(|step| step.prefix.len());
        self.after.reverse();
        self.after.sort_by_key(|step| Reverse(step.prefix.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// The steps of a path, known before it is asked for.
    pub(crate) fn steps(&self, path: &[u8]) -> Steps {
        let is_covered = covering(path);
        Steps { before: numbers(&self.before, &is_covered), after: numbers(&self.after, &is_covered) }
    }

    /// Runs known steps around an answer.
    pub(crate) fn around_known(
        &self,
        steps: &Steps,
        request: &Request<'_>,
        response: &mut Response<'_>,
        answer: impl FnOnce(&Request<'_>, &mut Response<'_>),
    ) {
        let before = steps.before.iter().map(|&number| &self.before[number]);
        let after = steps.after.iter().map(|&number| &self.after[number]);
        run(before, after, request, response, answer);
    }

    /// Runs the steps of the request's path around an answer.
    pub(crate) fn around(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        answer: impl FnOnce(&Request<'_>, &mut Response<'_>),
    ) {
        let is_covered = covering(request.head().path_bytes());
        let before = self.before.iter().filter(|step| is_covered(&step.prefix));
        let after = self.after.iter().filter(|step| is_covered(&step.prefix));
        run(before, after, request, response, answer);
    }
}

/// Runs what belongs before the answer, the answer unless one of those has answered, and what belongs after it.
fn run<'a>(
    mut before: impl Iterator<Item = &'a Scoped<Before>>,
    after: impl Iterator<Item = &'a Scoped<After>>,
    request: &Request<'_>,
    response: &mut Response<'_>,
    answer: impl FnOnce(&Request<'_>, &mut Response<'_>),
) {
    if !before.any(|before| (before.step)(request, response).is_break()) {
        answer(request, response);
    }
    for after in after {
        (after.step)(request, response);
    }
}

/// Tells which prefixes a path lies beneath: as it is sent or as it reads decoded, so that what lies behind a guard has no second name.
fn covering(path: &[u8]) -> impl Fn(&str) -> bool {
    let normal = normal(path);
    move |prefix| covers(prefix, path) || matches!(&normal, Some(normal) if covers(prefix, normal))
}

fn numbers<T>(all: &[Scoped<T>], is_covered: impl Fn(&str) -> bool) -> Vec<usize> {
    let covered = all.iter().enumerate().filter(|(_, step)| is_covered(&step.prefix));
    covered.map(|(number, _)| number).collect()
}
