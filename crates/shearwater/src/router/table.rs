//! The compiled routes of an app: immutable and shared by all workers.

use matchit::{Params, Router};
use shearwater_engine::{BodyPolicy, FieldLines};
use shearwater_http1::{Head, KnownField, Method};

use super::definitions::Parts;
use super::exact::Exact;
use super::node::Node;
use crate::fast::{ByOrigin, StaticResponse};
use crate::handlers::SyncHandler;
use crate::path::covers;

/// A handler of requests.
pub(crate) enum Target<S> {
    Sync(SyncHandler<S>, BodyPolicy),
    /// Responds later. The index of the worker's [`DeferredHandler`](crate::handlers::DeferredHandler).
    Deferred(usize, BodyPolicy),
    /// A mounted service, by its index.
    Mount(usize),
    /// A constant response, by its index.
    Static(usize),
    Preflight(Preflight),
    /// A handler other than a constant with field lines of a CORS policy.
    Cors(Box<(Target<S>, ByOrigin<FieldLines>)>),
}

impl<S> Target<S> {
    /// Returns how it receives request bodies, unless it is a mount.
    pub(super) fn body(&self) -> BodyPolicy {
        match self {
            Self::Sync(_, body) | Self::Deferred(_, body) => *body,
            Self::Cors(target) => target.0.body(),
            Self::Mount(_) | Self::Static(_) | Self::Preflight(_) => BodyPolicy::Discard,
        }
    }
}

/// The preflight response (`OPTIONS`) of a table.
pub(crate) struct Preflight {
    pub(super) lines: ByOrigin<FieldLines>,
    /// Methods of the table.
    pub(super) methods: Vec<Box<str>>,
}

impl Preflight {
    /// Returns true if the table has the method that a page asks for.
    fn owns(&self, head: &Head<'_>) -> bool {
        let asked = head.field(KnownField::AccessControlRequestMethod);
        asked.is_none_or(|asked| self.methods.iter().any(|method| method.as_bytes() == asked))
    }
}

/// The handler of all paths under a prefix without a route, by the index of its target.
pub(super) struct PrefixRoute {
    pub(super) prefix: String,
    pub(super) target: usize,
}

/// The compiled routes.
pub(super) struct RouteTable<S> {
    pub(super) exact: Exact,
    /// Indices of `pattern_nodes`.
    pub(super) patterns: Router<usize>,
    pub(super) pattern_nodes: Vec<Node>,
    /// Sorted by length, the longest prefix first.
    pub(super) prefixes: Vec<PrefixRoute>,
    /// The handler of every request without an exact path, if there are no patterns, prefixes or middleware.
    pub(super) everything: Option<Target<S>>,
    pub(super) targets: Vec<Target<S>>,
    pub(super) static_responses: Vec<StaticResponse>,
    /// Extension methods that any route has.
    pub(super) extensions: Vec<Box<str>>,
    /// Protocols of extended CONNECTs (RFC 8441) that any table upgrades to.
    pub(super) protocols: Vec<String>,
    pub(super) parts: Parts<S>,
}

/// The result of routing a request.
pub(super) struct Resolved<'a, S> {
    pub(super) target: Result<&'a Target<S>, Unmatched<'a>>,
    /// The parameters of the matched pattern.
    pub(super) params: Option<Params<'a, 'a>>,
    /// Length of the prefix of a mounted service.
    pub(super) mount_len: usize,
}

/// The reason why a request has no target.
#[derive(Clone, Copy)]
pub(super) enum Unmatched<'a> {
    /// The path exists, but not with this method.
    Method(&'a Node),
    Path,
}

impl<'a, S> Resolved<'a, S> {
    fn new(target: Result<&'a Target<S>, Unmatched<'a>>) -> Self {
        Self { target, params: None, mount_len: 0 }
    }
}

impl<S> RouteTable<S> {
    /// Returns the node of an exact path, and its target for a standard method.
    #[inline(always)]
    pub(super) fn exact(&self, method: Method, path: &[u8]) -> Option<(&Node, Option<&Target<S>>)> {
        let node = self.exact.get(path)?;
        Some((node, self.targets.get(node.target(method))))
    }

    /// Routes a request for which [`exact`](Self::exact) found no target: to a pattern, else to the mount or fallback
    /// with the longest prefix. `exact` is the node of its exact path.
    ///
    /// A preflight for a method that its table doesn't have goes to what follows the table, if there is something.
    pub(super) fn find_inexact<'a>(&'a self, exact: Option<&'a Node>, head: &Head<'a>) -> Resolved<'a, S> {
        let target_of = |node: &Node| self.targets.get(node.target_of(head));
        let mut other_method = None;
        if let Some(node) = exact {
            match self.preflight(node, head) {
                Some((target, true)) => return Resolved::new(Ok(target)),
                Some((target, false)) => other_method = Some(Resolved::new(Ok(target))),
                None => match target_of(node) {
                    Some(target) => return Resolved::new(Ok(target)),
                    None if node.falls_through => {}
                    None => return Resolved::new(Err(Unmatched::Method(node))),
                },
            }
        }
        if exact.is_none_or(|node| node.falls_through)
            && let Ok(matched) = self.patterns.at(head.path())
        {
            let node = &self.pattern_nodes[*matched.value];
            let resolved = |target| Resolved { params: Some(matched.params), ..Resolved::new(target) };
            match self.preflight(node, head) {
                Some((target, true)) => return resolved(Ok(target)),
                Some((target, false)) => other_method = other_method.or_else(|| Some(resolved(Ok(target)))),
                None => {
                    return resolved(target_of(node).ok_or(Unmatched::Method(exact.unwrap_or(node))));
                }
            }
        }
        let unmatched = || Resolved::new(Err(exact.map_or(Unmatched::Path, Unmatched::Method)));
        self.find_prefix(head).or(other_method).unwrap_or_else(unmatched)
    }

    /// Returns the preflight target of a table for an `OPTIONS` request, and whether the table has the method that a page
    /// asks for.
    fn preflight(&self, node: &Node, head: &Head<'_>) -> Option<(&Target<S>, bool)> {
        let target = self.targets.get(node.preflight().filter(|_| head.method() == Method::Options)?)?;
        match target {
            Target::Preflight(preflight) => Some((target, preflight.owns(head))),
            _ => None,
        }
    }

    /// Routes a request to the mount or fallback with the longest prefix.
    fn find_prefix(&self, head: &Head<'_>) -> Option<Resolved<'_, S>> {
        let path = head.path_bytes();
        let matched = self.prefixes.iter().find(|route| covers(&route.prefix, path));
        let target = matched.map(|route| &self.targets[route.target]).or(self.everything.as_ref())?;
        let is_mount = matches!(target, Target::Mount(_));
        let mount_len = matched.filter(|_| is_mount).map_or(0, |route| route.prefix.len());
        Some(Resolved { mount_len, ..Resolved::new(Ok(target)) })
    }
}
