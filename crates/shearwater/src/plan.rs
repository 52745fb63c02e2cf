//! The compiled routes of an app: immutable and shared by all workers.

use matchit::{Params, Router};
use shearwater_engine::FieldLines;
use shearwater_engine::tasks::StackOptions;
use shearwater_http1::{Head, Method};

use crate::Service;
use crate::by_origin::ByOrigin;
use crate::deferred::MakeDeferred;
use crate::encoded::{DynamicResponse, StaticResponse};
use crate::exact::Exact;
use crate::middleware::Middleware;
use crate::node::Node;
use crate::pattern::covers;
use crate::route::Route;
use crate::states::{MakeLocal, States};

/// Creates a worker's own service, by the worker's number.
pub(crate) type MakeService = Box<dyn Fn(usize) -> Box<dyn Service> + Send + Sync>;

/// A handler of requests.
pub(crate) enum Target {
    Route(Route),
    /// A fast route's constant response, by its index.
    Static(usize),
    Dynamic(DynamicResponse),
    /// The preflight response (`OPTIONS`) of a fast route.
    Preflight(ByOrigin<FieldLines>),
}

/// The handler of all paths under a prefix without a route.
pub(crate) struct PrefixRoute {
    pub(crate) prefix: String,
    pub(crate) target: PrefixTarget,
}

#[derive(Clone, Copy)]
pub(crate) enum PrefixTarget {
    /// A fallback, by the index of its target.
    Fallback(usize),
    /// A service, by its index.
    Mount(usize),
}

/// The compiled routes.
pub(crate) struct RouteTable {
    pub(crate) exact: Exact,
    /// Indices of `pattern_nodes`.
    pub(crate) patterns: Router<usize>,
    pub(crate) pattern_nodes: Vec<Node>,
    /// Sorted by length, the longest prefix first.
    pub(crate) prefixes: Vec<PrefixRoute>,
    /// The handler of every request without an exact path, if there are no patterns, other prefixes, middleware or
    /// state.
    pub(crate) everything: Option<PrefixTarget>,
    pub(crate) targets: Vec<Target>,
    pub(crate) static_responses: Vec<StaticResponse>,
    pub(crate) services: Vec<MakeService>,
    /// Extension methods that any route has.
    pub(crate) extensions: Vec<Box<str>>,
    pub(crate) middleware: Middleware,
    pub(crate) states: States,
    pub(crate) locals: Vec<MakeLocal>,
    pub(crate) deferred: Vec<MakeDeferred>,
    pub(crate) stacks: StackOptions,
}

/// The result of routing a request.
pub(crate) struct Resolved<'a> {
    pub(crate) resolution: Resolution<'a>,
    /// The parameters of the matched pattern.
    pub(crate) params: Option<Params<'a, 'a>>,
}

pub(crate) enum Resolution<'a> {
    Target(&'a Target),
    Mount {
        service: usize,
        prefix_len: usize,
    },
    /// The path exists, but not with this method.
    MethodNotAllowed(&'a Node),
    NotFound,
}

impl RouteTable {
    /// Returns the node of an exact path, and its target for a standard method.
    #[inline(always)]
    pub(crate) fn exact(&self, method: Method, path: &[u8]) -> Option<(&Node, Option<&Target>)> {
        let node = self.exact.get(path)?;
        Some((node, self.targets.get(node.target(method))))
    }

    /// Routes a request: to the exact path, else to a pattern, else to the mount or fallback with the longest prefix.
    pub(crate) fn find<'a>(&'a self, head: &Head<'a>) -> Resolved<'a> {
        match self.exact(head.method(), head.path_bytes()) {
            Some((_, Some(target))) => Resolved { resolution: Resolution::Target(target), params: None },
            Some((node, None)) => self.find_inexact(Some(node), head),
            None => self.find_inexact(None, head),
        }
    }

    /// Routes a request for which [`exact`](Self::exact) found no target. `exact` is the node of its exact path.
    pub(crate) fn find_inexact<'a>(&'a self, exact: Option<&'a Node>, head: &Head<'a>) -> Resolved<'a> {
        let path = head.path();
        let target_of = |node: &Node| self.targets.get(node.target_of(head)).map(Resolution::Target);
        if let Some(node) = exact.filter(|node| !node.falls_through) {
            return Resolved {
                resolution: target_of(node).unwrap_or(Resolution::MethodNotAllowed(node)),
                params: None,
            };
        }
        if let Ok(matched) = self.patterns.at(path) {
            let node = &self.pattern_nodes[*matched.value];
            let target = target_of(node);
            let resolution = target.unwrap_or(Resolution::MethodNotAllowed(exact.unwrap_or(node)));
            return Resolved { resolution, params: Some(matched.params) };
        }
        let matched = self.prefixes.iter().find(|route| covers(&route.prefix, path.as_bytes()));
        let resolution = match matched.map(|route| (route.target, route.prefix.len())) {
            Some((PrefixTarget::Fallback(target), _)) => Resolution::Target(&self.targets[target]),
            Some((PrefixTarget::Mount(service), prefix_len)) => Resolution::Mount { service, prefix_len },
            None => exact.map_or(Resolution::NotFound, Resolution::MethodNotAllowed),
        };
        Resolved { resolution, params: None }
    }
}
