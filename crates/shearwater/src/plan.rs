//! An app's routes, checked and settled: shared by all workers, and never changed.

use matchit::{Params, Router};
use shearwater_engine::FieldLines;
use shearwater_engine::tasks::StackOptions;
use shearwater_http1::{Head, Method};

use crate::Service;
use crate::by_origin::ByOrigin;
use crate::encoded::{Block, Written};
use crate::exact::Exact;
use crate::later::MakeLater;
use crate::middleware::Middleware;
use crate::node::Node;
use crate::pattern::covers;
use crate::route::Route;
use crate::states::{MakeLocal, States};

/// Makes a worker's own service, by the worker's number.
pub(crate) type MakeService = Box<dyn Fn(usize) -> Box<dyn Service> + Send + Sync>;

/// What answers a request.
pub(crate) enum Target {
    Route(Route),
    /// A fast route's answer that is the same each time, by its number.
    Block(usize),
    Written(Written),
    /// `OPTIONS` of a fast route that pages of other origins may read.
    Preflight(ByOrigin<FieldLines>),
}

/// What answers all that lies beneath a prefix and has no route.
pub(crate) struct Beneath {
    pub(crate) prefix: String,
    pub(crate) by: Answerer,
}

#[derive(Clone, Copy)]
pub(crate) enum Answerer {
    /// The fallback, by its target's number.
    Fallback(usize),
    /// A service, by its number.
    Mount(usize),
}

/// All of it.
pub(crate) struct Plan {
    pub(crate) exact: Exact,
    /// Numbers of `pattern_nodes`.
    pub(crate) patterns: Router<usize>,
    pub(crate) pattern_nodes: Vec<Node>,
    /// The longest prefix first.
    pub(crate) beneath: Vec<Beneath>,
    /// What answers all that has no exact path, where that is always the same: nothing runs around it, and there is nothing else.
    pub(crate) everything: Option<Answerer>,
    pub(crate) targets: Vec<Target>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) services: Vec<MakeService>,
    /// Names of the extension methods that any route has.
    pub(crate) extensions: Vec<Box<str>>,
    pub(crate) middleware: Middleware,
    pub(crate) states: States,
    pub(crate) locals: Vec<MakeLocal>,
    pub(crate) later: Vec<MakeLater>,
    pub(crate) stacks: StackOptions,
}

/// What a request comes to.
pub(crate) struct Found<'a> {
    pub(crate) what: What<'a>,
    /// The parameters of its pattern.
    pub(crate) params: Option<Params<'a, 'a>>,
}

pub(crate) enum What<'a> {
    Target(&'a Target),
    Mount {
        service: usize,
        prefix_len: usize,
    },
    /// The path has other methods.
    NoMethod(&'a Node),
    Nothing,
}

impl Plan {
    /// What an exact path has, and its target for a method.
    #[inline(always)]
    pub(crate) fn exact(&self, method: Method, path: &[u8]) -> Option<(&Node, Option<&Target>)> {
        let node = self.exact.get(path)?;
        Some((node, self.targets.get(node.target(method))))
    }

    /// What answers a request: the route of its exact path, else of a pattern, else the mount or the fallback with the longest prefix.
    pub(crate) fn find<'a>(&'a self, head: &Head<'a>) -> Found<'a> {
        match self.exact(head.method(), head.path_bytes()) {
            Some((_, Some(target))) => Found { what: What::Target(target), params: None },
            Some((node, None)) => self.elsewhere(Some(node), head),
            None => self.elsewhere(None, head),
        }
    }

    /// Finds what answers a request that no standard method of its exact path does. `exact`: what that path has.
    pub(crate) fn elsewhere<'a>(&'a self, exact: Option<&'a Node>, head: &Head<'a>) -> Found<'a> {
        let path = head.path();
        let target_of = |node: &Node| self.targets.get(node.target_of(head)).map(What::Target);
        if let Some(node) = exact.filter(|node| !node.is_open) {
            return Found { what: target_of(node).unwrap_or(What::NoMethod(node)), params: None };
        }
        if let Ok(matched) = self.patterns.at(path) {
            let node = &self.pattern_nodes[*matched.value];
            let target = target_of(node);
            let what = target.unwrap_or(What::NoMethod(exact.unwrap_or(node)));
            return Found { what, params: Some(matched.params) };
        }
        let beneath = self.beneath.iter().find(|beneath| covers(&beneath.prefix, path.as_bytes()));
        let what = match beneath.map(|beneath| (beneath.by, beneath.prefix.len())) {
            Some((Answerer::Fallback(target), _)) => What::Target(&self.targets[target]),
            Some((Answerer::Mount(service), prefix_len)) => What::Mount { service, prefix_len },
            None => exact.map_or(What::Nothing, What::NoMethod),
        };
        Found { what, params: None }
    }
}
