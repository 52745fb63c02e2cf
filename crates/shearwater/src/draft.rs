//! What a path is given, before it is settled.

use shearwater_http1::Method;

use crate::middleware::Steps;
use crate::node::{Node, allow};
use crate::{Place, RouteError};

/// A path's methods so far.
#[derive(Default)]
pub(crate) struct Draft {
    claims: Vec<Claim>,
    has_route: bool,
}

struct Claim {
    method: Method,
    place: Place,
    /// The number of what answers, once it is known.
    target: Option<usize>,
}

impl Draft {
    /// Takes a method for a route, which answers by the target with this number.
    pub(crate) fn route(&mut self, method: Method, place: Place, target: usize) -> Result<(), RouteError> {
        self.has_route = true;
        self.claim(method, place, Some(target))
    }

    /// Takes a method, for which something will answer.
    pub(crate) fn claim(
        &mut self,
        method: Method,
        place: Place,
        target: Option<usize>,
    ) -> Result<(), RouteError> {
        if matches!(method, Method::Connect | Method::Other) {
            let why = format!("{method:?} can't be routed");
            return Err(RouteError::Refused { given: place, why });
        }
        if let Some(with) = self.claims.iter().find(|claim| claim.method == method) {
            return Err(RouteError::Conflict { given: place, with: with.place.clone() });
        }
        self.claims.push(Claim { method, place, target });
        Ok(())
    }

    /// Says what answers methods that were taken by this place before.
    pub(crate) fn settle(&mut self, place: &Place, target_of: impl Fn(Method) -> usize) {
        for claim in self.claims.iter_mut().filter(|claim| claim.place == *place) {
            claim.target = Some(target_of(claim.method));
        }
    }

    /// Whether requests with other methods go on.
    pub(crate) fn is_open(&self) -> bool {
        !self.has_route
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = Method> {
        self.claims.iter().map(|claim| claim.method)
    }

    /// Where its first method was given.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.claims.first().map(|claim| &claim.place)
    }

    /// The node. `others`: methods that requests may go on to.
    pub(crate) fn into_node(self, others: Vec<Method>, steps: Steps) -> Node {
        let allow = allow(self.methods().chain(others));
        let targets = self.claims.iter().filter_map(|claim| Some((claim.method, claim.target?)));
        Node::new(targets, allow, self.is_open(), steps)
    }
}
