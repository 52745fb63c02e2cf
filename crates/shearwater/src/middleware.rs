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

    /// Whether something runs around requests with this path.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let normal = normal(path.as_bytes());
        let is_covered = |prefix: &str| covers(prefix, path.as_bytes()) || covers(prefix, &normal);
        self.before.iter().any(|step| is_covered(&step.prefix))
            || self.after.iter().any(|step| is_covered(&step.prefix))
    }

    /// Runs what belongs before the answer, the answer unless one of those has answered, and what belongs after it.
    ///
    /// A path counts as it is sent and as it reads decoded: what lies behind a guard has no second name.
    pub(crate) fn around(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        answer: impl FnOnce(&Request<'_>, &mut Response<'_>),
    ) {
        if self.before.is_empty() && self.after.is_empty() {
            return answer(request, response);
        }
        let path = request.path().as_bytes();
        let normal = normal(path);
        let is_covered = |prefix: &str| covers(prefix, path) || covers(prefix, &normal);
        let mut before = self.before.iter().filter(|step| is_covered(&step.prefix));
        if !before.any(|before| (before.step)(request, response).is_break()) {
            answer(request, response);
        }
        for after in self.after.iter().filter(|step| is_covered(&step.prefix)) {
            (after.step)(request, response);
        }
    }
}
