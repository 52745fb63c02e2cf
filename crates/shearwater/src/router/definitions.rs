//! An app's routes as they are defined, before they are compiled.

use shearwater_engine::tasks::StackOptions;
use shearwater_engine::{BodyPolicy, Service};

use super::method::RouteMethod;
use crate::error::{RouteError, SourceLocation};
use crate::fast::{Cors, Fast};
use crate::handlers::{DeferredHandler, SyncHandler, Worker};
use crate::middleware::Steps;

/// A registered item with its path and its source location.
pub(crate) struct Registered<T> {
    pub(crate) place: SourceLocation,
    pub(crate) path: String,
    pub(crate) item: T,
}

/// An app's definitions.
pub(crate) struct Definitions<S> {
    pub(crate) routes: Vec<Registered<RouteDefinition<S>>>,
    pub(crate) prefixes: Vec<Registered<PrefixDefinition<S>>>,
    pub(crate) parts: Parts<S>,
    pub(crate) errors: Vec<RouteError>,
}

impl<S> Definitions<S> {
    pub(crate) fn new(make_state: MakeState<S>) -> Self {
        let parts = Parts {
            services: Vec::new(),
            middleware: Steps::default(),
            make_state,
            deferred: Vec::new(),
            stacks: StackOptions::default(),
        };
        Self { routes: Vec::new(), prefixes: Vec::new(), parts, errors: Vec::new() }
    }
}

/// A handler of a path and method.
pub(crate) struct RouteDefinition<S> {
    pub(crate) method: RouteMethod,
    pub(crate) content: Content<S>,
    pub(crate) cors: Option<Cors>,
    /// The protocol of extended CONNECTs that it handles, too.
    pub(crate) protocol: Option<String>,
}

pub(crate) enum Content<S> {
    Sync(SyncHandler<S>, BodyPolicy),
    /// The index of the worker's [`DeferredHandler`].
    Deferred(usize, BodyPolicy),
    Fast(Fast),
    /// Responds to preflights for these methods of its table.
    Preflight {
        methods: Vec<RouteMethod>,
        cors: Cors,
        are_constant: bool,
    },
}

/// A handler of all paths under a prefix without a table of their own.
pub(crate) enum PrefixDefinition<S> {
    Fallback(Content<S>),
    /// A mounted service, by its index.
    Mount(usize),
}

/// Creates a worker's own service, by the worker's number.
pub(crate) type MakeBoxedService = Box<dyn Fn(usize) -> Box<dyn Service> + Send + Sync>;

/// Creates a worker's state, by the worker's number.
pub(crate) type MakeState<S> = Box<dyn Fn(usize) -> S + Send + Sync>;

/// Creates a worker's deferred handler.
pub(crate) type InstantiateDeferred<S> = Box<dyn Fn(&Worker<S>) -> DeferredHandler + Send + Sync>;

/// The parts of an app that workers use as they are defined.
pub(crate) struct Parts<S> {
    pub(crate) services: Vec<MakeBoxedService>,
    pub(crate) middleware: Steps<S>,
    pub(crate) make_state: MakeState<S>,
    pub(crate) deferred: Vec<InstantiateDeferred<S>>,
    pub(crate) stacks: StackOptions,
}
