//! Compiled routes, and the worker that dispatches requests to them.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{BodyPolicy, FieldLines, Prebuilt, Request, Response};
use shearwater_http1::Head;

use crate::by_origin::ByOrigin;
use crate::deferred::DeferredHandler;
use crate::encoded::{DynamicResponse, StaticResponse};
use crate::node::Node;
use crate::plan::{PrefixTarget, Resolution, Resolved, RouteTable, Target};
use crate::route_context::RouteContext;
use crate::states::{Locals, States};
use crate::{App, RouteErrors, Service, deferred, planning};

/// The compiled routes of an [`App`], shared by all workers. Cheap to clone.
#[derive(Clone)]
pub struct Routes(Arc<RouteTable>);

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl Routes {
    pub(crate) fn of(app: App) -> Result<Self, RouteErrors> {
        planning::compile(app).map(|table| Self(Arc::new(table)))
    }

    /// Creates the service of one worker, with its own state, mounted services and encoded responses. To be called on
    /// the worker's thread; `worker` is passed to the functions that make state and mounted services.
    #[must_use]
    pub fn service(&self, worker: usize) -> RoutesService {
        let table = Arc::clone(&self.0);
        RoutesService(Rc::new(WorkerRoutes {
            static_responses: table.static_responses.iter().map(StaticResponse::encode).collect(),
            services: table.services.iter().map(|make| make(worker)).collect(),
            locals: Locals::new(&table.locals, worker),
            deferred: deferred::instantiate(&table.deferred, table.stacks),
            table,
        }))
    }
}

/// The routes of an [`App`] on one worker.
pub struct RoutesService(Rc<WorkerRoutes>);

impl fmt::Debug for RoutesService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutesService").finish_non_exhaustive()
    }
}

pub(crate) struct WorkerRoutes {
    table: Arc<RouteTable>,
    static_responses: Vec<ByOrigin<Rc<Prebuilt>>>,
    services: Vec<Box<dyn Service>>,
    locals: Locals,
    deferred: Vec<DeferredHandler>,
}

impl Service for RoutesService {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        self.0.body_policy(head)
    }

    #[inline]
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let worker = &self.0;
        let table = &*worker.table;
        let head = request.head();
        match table.exact(head.method(), head.path_bytes()) {
            Some((node, Some(target))) if node.is_bare => worker.call(target, request, response),
            Some((node, Some(target))) => worker.respond_exact(node, target, request, response),
            Some((node, None)) => worker.respond_inexact(Some(node), request, response),
            None => match table.everything {
                Some(PrefixTarget::Fallback(target)) => {
                    worker.call(&table.targets[target], request, response);
                }
                Some(PrefixTarget::Mount(service)) => worker.services[service].respond(request, response),
                None => worker.respond_inexact(None, request, response),
            },
        }
    }
}

impl WorkerRoutes {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match self.table.find(head).resolution {
            Resolution::Target(Target::Route(route)) => route.body_policy(),
            Resolution::Mount { service, .. } => self.services[service].body_policy(head),
            Resolution::Target(_) | Resolution::MethodNotAllowed(_) | Resolution::NotFound => {
                BodyPolicy::Discard
            }
        }
    }

    /// Calls the target of an exact path between the path's middleware.
    #[inline(never)]
    fn respond_exact(
        self: &Rc<Self>,
        node: &Node,
        target: &Target,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let context = self.context(request, None, 0);
        let middleware = &self.table.middleware;
        middleware.run_steps(node.steps(), &request.within(&context), response, |request, response| {
            self.call(target, request, response);
        });
    }

    /// Routes a request whose exact path has no target, and calls what is found between its middleware.
    #[inline(never)]
    fn respond_inexact(
        self: &Rc<Self>,
        exact: Option<&Node>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let head = request.head();
        let resolved = self.table.find_inexact(exact, &head);
        let middleware = &self.table.middleware;
        if middleware.is_empty() {
            return self.dispatch(&resolved, request, response);
        }
        let context = self.context(request, resolved.params.as_ref(), 0);
        middleware.run_matching(&request.within(&context), response, |request, response| {
            self.dispatch(&resolved, request, response);
        });
    }

    fn dispatch(
        self: &Rc<Self>,
        resolved: &Resolved<'_>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let mount_len =
            if let Resolution::Mount { prefix_len, .. } = resolved.resolution { prefix_len } else { 0 };
        let context = self.context(request, resolved.params.as_ref(), mount_len);
        let request = &request.within(&context);
        match &resolved.resolution {
            Resolution::MethodNotAllowed(node) => drop(response.unhandled_method(request, node.allow())),
            Resolution::NotFound => drop(response.unhandled_target(request, "")),
            Resolution::Target(target) => self.call(target, request, response),
            Resolution::Mount { service, .. } => self.services[*service].respond(request, response),
        }
    }

    fn context<'a>(
        self: &'a Rc<Self>,
        request: &Request<'_>,
        params: Option<&'a matchit::Params<'a, 'a>>,
        mount_len: usize,
    ) -> RouteContext<'a> {
        RouteContext { worker: self, params, mount_len, is_method_known: request.is_method_known() }
    }

    pub(crate) fn knows_method(&self, name: &str) -> bool {
        self.table.extensions.iter().any(|known| **known == *name)
    }

    pub(crate) fn states(&self) -> &States {
        &self.table.states
    }

    pub(crate) fn locals(&self) -> &Locals {
        &self.locals
    }

    #[inline(always)]
    fn call(&self, target: &Target, request: &Request<'_>, response: &mut Response<'_>) {
        match target {
            Target::Route(route) => route.respond(request, response, &self.deferred),
            Target::Static(index) => respond_static(&self.static_responses[*index], request, response),
            Target::Dynamic(dynamic) => respond_dynamic(dynamic, request, response),
            Target::Preflight(lines) => respond_preflight(lines, request, response),
        }
    }
}

// Not inlined, like the two below, so that calling a handler stays a single jump.
#[inline(never)]
fn respond_static(fixed: &ByOrigin<Rc<Prebuilt>>, request: &Request<'_>, response: &mut Response<'_>) {
    response.prebuilt(fixed.get(&request.head()));
}

#[inline(never)]
fn respond_dynamic(dynamic: &DynamicResponse, request: &Request<'_>, response: &mut Response<'_>) {
    dynamic.respond(&request.head(), response);
}

#[inline(never)]
fn respond_preflight(lines: &ByOrigin<FieldLines>, request: &Request<'_>, response: &mut Response<'_>) {
    response.status(204).lines(lines.get(&request.head()));
}
