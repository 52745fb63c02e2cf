//! A path's method table.

use shearwater_http1::{Head, Method};

use super::method::RouteMethod;
use crate::error::{RouteError, SourceLocation};
use crate::middleware::PathSteps;

/// Number of [`Method`]s.
const METHODS: usize = Method::Other as usize + 1;

/// No target.
const NONE: u32 = u32::MAX;

/// A path's target indices by method. Small, because most requests find it outside the cache.
#[derive(Debug)]
pub(super) struct Node {
    targets: [u32; METHODS],
    /// True if the path has constants only: requests with other methods fall through to patterns.
    pub(super) falls_through: bool,
    /// True if no middleware runs for the path.
    pub(super) is_bare: bool,
    details: Box<Details>,
}

/// The parts of a node that most requests don't need.
#[derive(Debug)]
struct Details {
    allow: String,
    steps: PathSteps,
    /// The target of `OPTIONS` requests, if the table has a CORS policy.
    preflight: Option<usize>,
    /// Targets of extension methods by name.
    extensions: Vec<(Box<str>, u32)>,
}

impl Node {
    /// Returns the target index for a standard method. `HEAD` falls back to `GET`.
    #[inline]
    pub(super) fn target(&self, method: Method) -> usize {
        self.targets[method as usize] as usize
    }

    /// Returns the target index for a request, whose method may be an extension.
    pub(super) fn target_of(&self, head: &Head<'_>) -> usize {
        let name = head.method_name();
        match head.method() {
            Method::Other => {
                let found = self.details.extensions.iter().find(|(known, _)| **known == *name);
                found.map_or(NONE, |(_, target)| *target) as usize
            }
            method => self.target(method),
        }
    }

    /// Returns the target index of preflights, if the table has a CORS policy.
    pub(super) fn preflight(&self) -> Option<usize> {
        self.details.preflight
    }

    /// Returns the middleware of an exact path.
    pub(super) fn steps(&self) -> &PathSteps {
        &self.details.steps
    }

    /// Returns its methods as `Allow` lists them (RFC 9110 section 10.2.1).
    pub(super) fn allow(&self) -> &str {
        &self.details.allow
    }
}

/// A path's methods while routes are compiled.
#[derive(Default)]
pub(super) struct NodeBuilder {
    claims: Vec<Claim>,
}

struct Claim {
    method: RouteMethod,
    place: SourceLocation,
    /// The index of the target.
    target: usize,
    kind: ClaimKind,
}

/// The kind of a handler that a method is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimKind {
    Handler,
    Constant,
    /// Preflights of a table of constants only, or of another one.
    Preflight {
        are_constant: bool,
    },
}

impl NodeBuilder {
    /// Registers a target for a method.
    pub(super) fn claim(
        &mut self,
        method: RouteMethod,
        place: SourceLocation,
        target: usize,
        kind: ClaimKind,
    ) -> Result<(), RouteError> {
        if let Some(why) = method.mistake() {
            return Err(RouteError::Refused { given: place, why });
        }
        if let Some(with) = self.claims.iter().find(|claim| claim.method == method) {
            return Err(RouteError::Conflict { given: place, with: with.place.clone() });
        }
        self.claims.push(Claim { method, place, target, kind });
        Ok(())
    }

    /// Registers a target for extended CONNECTs (RFC 8441 section 4).
    pub(super) fn claim_connect(&mut self, place: SourceLocation, target: usize) {
        self.claims.push(Claim { method: Method::Connect.into(), place, target, kind: ClaimKind::Handler });
    }

    /// Returns true if requests with other methods fall through to patterns.
    pub(super) fn falls_through(&self) -> bool {
        self.claims.iter().all(|claim| {
            matches!(claim.kind, ClaimKind::Constant | ClaimKind::Preflight { are_constant: true })
        })
    }

    pub(super) fn methods(&self) -> impl Iterator<Item = &RouteMethod> {
        self.claims.iter().map(|claim| &claim.method)
    }

    /// Returns the place of its first method.
    pub(super) fn place(&self) -> Option<&SourceLocation> {
        self.claims.first().map(|claim| &claim.place)
    }

    /// Builds the node. `others` are methods of a pattern that requests may fall through to.
    pub(super) fn into_node(self, others: &[RouteMethod], steps: PathSteps, is_bare: bool) -> Node {
        let mut targets = [NONE; METHODS];
        let mut details = Details {
            allow: allow(self.methods().chain(others)),
            steps,
            preflight: None,
            extensions: Vec::new(),
        };
        for claim in &self.claims {
            let target = u32::try_from(claim.target).expect("memory holds fewer than 2^32 targets");
            if matches!(claim.kind, ClaimKind::Preflight { .. }) {
                details.preflight = Some(claim.target);
                continue;
            }
            match (claim.method.standard(), claim.method.extension()) {
                (Some(method), _) => targets[method as usize] = target,
                (None, name) => details.extensions.extend(name.map(|name| (name.into(), target))),
            }
        }
        let (get, head) = (Method::Get as usize, Method::Head as usize);
        if targets[head] == NONE {
            targets[head] = targets[get];
        }
        Node { targets, falls_through: self.falls_through(), is_bare, details: Box::new(details) }
    }
}

/// Returns the value of `Allow`: each method once, with `HEAD` for `GET` and with `OPTIONS`.
pub(super) fn allow<'a>(methods: impl Iterator<Item = &'a RouteMethod>) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut add = |method: String| {
        if !all.contains(&method) {
            all.push(method);
        }
    };
    let mut has_get = false;
    for method in methods {
        match method.standard() {
            // An extended CONNECT is an upgrade of a `GET`, which is listed.
            Some(Method::Connect | Method::Options | Method::Other) => continue,
            standard => has_get |= standard == Some(Method::Get),
        }
        add(method.to_string());
    }
    if has_get {
        add("HEAD".to_owned());
    }
    add("OPTIONS".to_owned());
    all.join(", ")
}
