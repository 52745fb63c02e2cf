//! The compiled routes of an app: immutable and shared by all workers.

use std::any::{Any, TypeId};

use matchit::{Params, Router};
use shearwater_engine::tasks::StackOptions;
use shearwater_engine::{FieldLines, Service};
use shearwater_http1::{Head, Method};

use super::exact::Exact;
use super::node::Node;
use super::route::Route;
use crate::fast::{ByOrigin, DynamicResponse, StaticResponse};
use crate::handlers::MakeDeferred;
use crate::middleware::Middleware;
use crate::path::covers;

/// Creates a worker's own service, by the worker's number.
pub(crate) type MakeService = Box<dyn Fn(usize) -> Box<dyn Service> + Send + Sync>;

/// Creates a worker's local state, by the worker's number.
pub(crate) type MakeLocal = Box<dyn Fn(usize) -> Box<dyn Any> + Send + Sync>;

/// The parts of an app that workers use as they are defined.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) services: Vec<MakeService>,
    pub(crate) middleware: Middleware,
    /// State shared by all workers, by type.
    pub(crate) states: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
    pub(crate) locals: Vec<(TypeId, MakeLocal)>,
    pub(crate) deferred: Vec<MakeDeferred>,
    pub(crate) stacks: StackOptions,
}

/// A handler of requests.
pub(crate) enum Target {
    Route(Route),
    /// A mounted service, by its index.
    Mount(usize),
    /// A fast route's constant response, by its index.
    Static(usize),
    Dynamic(DynamicResponse),
    /// The preflight response (`OPTIONS`) of a fast route.
    Preflight(ByOrigin<FieldLines>),
}

/// The handler of all paths under a prefix without a route, by the index of its target.
pub(super) struct PrefixRoute {
    pub(super) prefix: String,
    pub(super) target: usize,
}

/// The compiled routes.
pub(super) struct RouteTable {
    pub(super) exact: Exact,
    /// Indices of `pattern_nodes`.
    pub(super) patterns: Router<usize>,
    pub(super) pattern_nodes: Vec<Node>,
    /// Sorted by length, the longest prefix first.
    pub(super) prefixes: Vec<PrefixRoute>,
    /// The handler of every request without an exact path, if there are no patterns, prefixes, middleware or state.
    pub(super) everything: Option<Target>,
    pub(super) targets: Vec<Target>,
    pub(super) static_responses: Vec<StaticResponse>,
    /// Extension methods that any route has.
    pub(super) extensions: Vec<Box<str>>,
    pub(super) parts: Parts,
}

/// The result of routing a request.
pub(super) struct Resolved<'a> {
    pub(super) target: Result<&'a Target, Unmatched<'a>>,
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

impl<'a> Resolved<'a> {
    fn new(target: Result<&'a Target, Unmatched<'a>>) -> Self {
        Self { target, params: None, mount_len: 0 }
    }
}

impl RouteTable {
    /// Returns the node of an exact path, and its target for a standard method.
    #[inline(always)]
    pub(super) fn exact(&self, method: Method, path: &[u8]) -> Option<(&Node, Option<&Target>)> {
        let node = self.exact.get(path)?;
        Some((node, self.targets.get(node.target(method))))
    }

    /// Routes a request for which [`exact`](Self::exact) found no target: to a pattern, else to the mount or fallback
    /// with the longest prefix. `exact` is the node of its exact path.
    pub(super) fn find_inexact<'a>(&'a self, exact: Option<&'a Node>, head: &Head<'a>) -> Resolved<'a> {
        let path = head.path();
        let target_of = |node: &Node| self.targets.get(node.target_of(head));
        if let Some(node) = exact.filter(|node| !node.falls_through) {
            return Resolved::new(target_of(node).ok_or(Unmatched::Method(node)));
        }
        if let Ok(matched) = self.patterns.at(path) {
            let node = &self.pattern_nodes[*matched.value];
            let target = target_of(node).ok_or(Unmatched::Method(exact.unwrap_or(node)));
            return Resolved { params: Some(matched.params), ..Resolved::new(target) };
        }
        let matched = self.prefixes.iter().find(|route| covers(&route.prefix, path.as_bytes()));
        let target = matched.map(|route| &self.targets[route.target]).or(self.everything.as_ref());
        let is_mount = matches!(target, Some(Target::Mount(_)));
        let mount_len = matched.filter(|_| is_mount).map_or(0, |route| route.prefix.len());
        let target = target.ok_or(exact.map_or(Unmatched::Path, Unmatched::Method));
        Resolved { mount_len, ..Resolved::new(target) }
    }
}
