//! What a path is given, before it is settled.

use crate::middleware::Steps;
use crate::node::{Node, allow};
use crate::{Place, RouteError, RouteMethod};

/// A path's methods so far.
#[derive(Default)]
pub(crate) struct Draft {
    claims: Vec<Claim>,
    has_route: bool,
}

struct Claim {
    method: RouteMethod,
    place: Place,
    by: By,
}

/// What answers.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// A route, by its target's number.
    Target(usize),
    /// A fast route, by its own number.
    Fast(usize),
}

impl Draft {
    /// Takes a method.
    pub(crate) fn claim(&mut self, method: RouteMethod, place: Place, by: By) -> Result<(), RouteError> {
        self.has_route |= matches!(by, By::Target(_));
        if let Some(why) = method.why_not() {
            return Err(RouteError::Refused { given: place, why });
        }
        if let Some(with) = self.claims.iter().find(|claim| claim.method == method) {
            return Err(RouteError::Conflict { given: place, with: with.place.clone() });
        }
        self.claims.push(Claim { method, place, by });
        Ok(())
    }

    /// Whether requests with other methods go on.
    pub(crate) fn is_open(&self) -> bool {
        !self.has_route
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = &RouteMethod> {
        self.claims.iter().map(|claim| &claim.method)
    }

    /// Where its first method was given.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.claims.first().map(|claim| &claim.place)
    }

    /// The node. `others`: methods that requests may go on to; `of_fast`: the number of a fast route's target for a method.
    pub(crate) fn into_node(
        self,
        others: &[RouteMethod],
        steps: Steps,
        of_fast: impl Fn(usize, &RouteMethod) -> usize,
    ) -> Node {
        let allow = allow(self.methods().chain(others));
        let targets = self.claims.iter().map(|claim| match claim.by {
            By::Target(target) => (&claim.method, target),
            By::Fast(number) => (&claim.method, of_fast(number, &claim.method)),
        });
        Node::new(targets, allow, self.is_open(), steps)
    }
}
