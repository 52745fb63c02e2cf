//! A path's methods while routes are compiled.

use crate::middleware::Steps;
use crate::node::{Node, allow};
use crate::{RouteError, RouteMethod, SourceLocation};

/// A path's methods and their handlers so far.
#[derive(Default)]
pub(crate) struct NodeBuilder {
    claims: Vec<Claim>,
    has_route: bool,
}

struct Claim {
    method: RouteMethod,
    place: SourceLocation,
    by: ClaimedBy,
}

/// The handler of a method.
#[derive(Clone, Copy)]
pub(crate) enum ClaimedBy {
    /// A route, by the index of its target.
    Target(usize),
    /// A fast route, by its own index.
    Fast(usize),
}

impl NodeBuilder {
    /// Registers a handler for a method.
    pub(crate) fn claim(
        &mut self,
        method: RouteMethod,
        place: SourceLocation,
        by: ClaimedBy,
    ) -> Result<(), RouteError> {
        self.has_route |= matches!(by, ClaimedBy::Target(_));
        if let Some(why) = method.mistake() {
            return Err(RouteError::Refused { given: place, why });
        }
        if let Some(with) = self.claims.iter().find(|claim| claim.method == method) {
            return Err(RouteError::Conflict { given: place, with: with.place.clone() });
        }
        self.claims.push(Claim { method, place, by });
        Ok(())
    }

    /// Returns true if requests with other methods fall through to patterns.
    pub(crate) fn falls_through(&self) -> bool {
        !self.has_route
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = &RouteMethod> {
        self.claims.iter().map(|claim| &claim.method)
    }

    /// Returns the place of its first method.
    pub(crate) fn place(&self) -> Option<&SourceLocation> {
        self.claims.first().map(|claim| &claim.place)
    }

    /// Builds the node. `others` are methods of a pattern that requests may fall through to; `of_fast` returns the
    /// target index of a fast route for a method.
    pub(crate) fn into_node(
        self,
        others: &[RouteMethod],
        steps: Steps,
        of_fast: impl Fn(usize, &RouteMethod) -> usize,
    ) -> Node {
        let allow = allow(self.methods().chain(others));
        let targets = self.claims.iter().map(|claim| match claim.by {
            ClaimedBy::Target(target) => (&claim.method, target),
            ClaimedBy::Fast(number) => (&claim.method, of_fast(number, &claim.method)),
        });
        Node::new(targets, allow, self.falls_through(), steps)
    }
}
