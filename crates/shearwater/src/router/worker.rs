//! Compiled routes, and the worker that dispatches requests to them.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use matchit::Params;
use shearwater_engine::{
    Around, BodyPolicy, Context, FieldLines, GuardsPassed, Prebuilt, Request, Response, Service,
};
use shearwater_http1::Head;

use super::compile::compile;
use super::definitions::Definitions;
use super::node::Node;
use super::table::{Preflight, Resolved, RouteTable, Target, Unmatched};
use crate::app::MakeService;
use crate::error::RouteErrors;
use crate::fast::{ByOrigin, StaticResponse};
use crate::handlers::{DeferredHandler, Worker};
use crate::middleware::Middleware;
use crate::request;

/// The compiled routes of an [`App`](crate::App), shared by all workers. Cheap to clone.
pub struct Routes<S = ()>(Arc<RouteTable<S>>);

impl<S> Clone for Routes<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl<S: 'static> Routes<S> {
    pub(crate) fn of(definitions: Definitions<S>) -> Result<Self, RouteErrors> {
        compile(definitions).map(|table| Self(Arc::new(table)))
    }

    /// Creates the service of one worker, with its own state, mounted services and encoded responses. To be called on
    /// the worker's thread; `worker` is passed to the functions that make state and mounted services.
    #[must_use]
    pub fn service(&self, worker: usize) -> RoutesService<S> {
        let table = Arc::clone(&self.0);
        let parts = &table.parts;
        let state = Worker::new((parts.make_state)(worker), parts.stacks);
        RoutesService(Rc::new(WorkerRoutes {
            static_responses: table.static_responses.iter().map(StaticResponse::encode).collect(),
            services: parts.services.iter().map(|make| make(worker)).collect(),
            deferred: parts.deferred.iter().map(|make| make(&state)).collect(),
            worker: state,
            table,
        }))
    }
}

/// Mounts an app in another one, which has a state of its own.
impl<S: 'static> MakeService for Routes<S> {
    type Service = RoutesService<S>;

    fn make(&self, worker: usize) -> RoutesService<S> {
        self.service(worker)
    }
}

/// The routes of an [`App`](crate::App) on one worker.
pub struct RoutesService<S = ()>(Rc<WorkerRoutes<S>>);

impl<S> fmt::Debug for RoutesService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutesService").finish_non_exhaustive()
    }
}

struct WorkerRoutes<S> {
    table: Arc<RouteTable<S>>,
    static_responses: Vec<ByOrigin<Rc<Prebuilt>>>,
    services: Vec<Box<dyn Service>>,
    deferred: Vec<DeferredHandler>,
    worker: Worker<S>,
}

impl<S: 'static> Service for RoutesService<S> {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let worker = &*self.0;
        let target = match worker.table.exact(head.method(), head.path_bytes()) {
            Some((_, Some(target))) => Ok(target),
            exact => worker.table.find_inexact(exact.map(|(node, _)| node), head).target,
        };
        match target {
            Ok(Target::Mount(service)) => worker.services[*service].body_policy(head),
            Ok(target) => target.body(),
            Err(_) => BodyPolicy::Discard,
        }
    }

    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        self.0.guard(request, response).map(|(_, all)| all)
    }

    fn protocols(&self) -> Vec<String> {
        let of_routes = self.0.table.protocols.iter().cloned();
        of_routes.chain(self.0.services.iter().flat_map(|service| service.protocols())).collect()
    }

    fn has_guards(&self) -> bool {
        self.0.table.parts.middleware.has_guards()
            || self.0.services.iter().any(|service| service.has_guards())
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
            None => match &table.everything {
                Some(target) => worker.call(target, request, response),
                None => worker.respond_inexact(None, request, response),
            },
        }
    }

    fn trim(&self) {
        self.0.services.iter().for_each(|service| service.trim());
        if let Some(stacks) = self.0.worker.stacks.get() {
            stacks.trim();
        }
    }
}

impl<S: 'static> WorkerRoutes<S> {
    /// Returns a request with the state, for middleware.
    fn with_state<'a>(&'a self, request: &'a Request<'a>) -> request::Request<'a, S> {
        request::Request::new(request, &*self.worker.state)
    }

    /// Runs the guards of the path, then those of a mounted service. Returns the number passed of its own and of all; `None`
    /// if one of them doesn't let the request pass, and the path's `after` steps have changed the response.
    #[inline(never)]
    fn guard(
        self: &Rc<Self>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<(GuardsPassed, GuardsPassed)> {
        let (head, middleware) = (request.head(), &self.table.parts.middleware);
        let exact = self.table.exact(head.method(), head.path_bytes());
        if let Some((node, Some(_))) = exact {
            let context = self.context(request, None, 0);
            let request = &request.within(&context);
            let passed = middleware.run_guards(node.steps(), &self.with_state(request), response);
            if passed.is_none() && !response.around(self, 0) {
                self.run_after(middleware.after(node.steps()), 0, request, response);
            }
            return passed.map(|own| (own, own));
        }
        let resolved = self.table.find_inexact(exact.map(|(node, _)| node), &head);
        let context = self.context(request, resolved.params.as_ref(), 0);
        let mounted = self.context(request, None, resolved.mount_len);
        let within = request.within(&context);
        let own = middleware.run_matching_guards(&self.with_state(&within), response);
        let passed = own.and_then(|own| match resolved.target {
            Ok(Target::Mount(index)) => {
                let request = request.within(&mounted).after_guards(own);
                Some((own, self.services[*index].guard(&request, response)?))
            }
            Ok(_) | Err(_) => Some((own, own)),
        });
        if passed.is_none() && !response.around(self, 0) {
            self.run_after(middleware.matching_after(&self.with_state(&within)), 0, &within, response);
        }
        passed
    }

    /// Calls the target of an exact path between the path's middleware.
    #[inline(never)]
    fn respond_exact(
        self: &Rc<Self>,
        node: &Node,
        target: &Target<S>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        if node.steps().has_guards() && self.guard(request, response).is_none() {
            return;
        }
        let context = self.context(request, None, 0);
        let (middleware, request) = (&self.table.parts.middleware, &request.within(&context));
        self.call(target, request, response);
        if !response.around(self, 0) {
            self.run_after(middleware.after(node.steps()), 0, request, response);
        }
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
        let middleware = &self.table.parts.middleware;
        if middleware.is_empty() {
            return self.dispatch(&resolved, request, response);
        }
        // Those of a mounted service come before the app's steps, as they do for requests with a body.
        let Some((own, all)) = self.guard(request, response) else { return };
        let context = self.context(request, resolved.params.as_ref(), 0);
        let request = &request.within(&context).behind(own, all);
        self.dispatch(&resolved, request, response);
        if !response.around(self, 0) {
            self.run_after(middleware.matching_after(&self.with_state(request)), 0, request, response);
        }
    }

    /// Runs the steps after a handler from number `from` on. If one of them defers the response, the others wait.
    fn run_after<'a>(
        self: &Rc<Self>,
        steps: impl Iterator<Item = &'a dyn Middleware<S>>,
        from: u64,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        for (next, step) in (1..).zip(steps).skip(from as usize) {
            step.response(&self.with_state(request), response);
            if response.around(self, next) {
                return;
            }
        }
    }

    fn dispatch(
        self: &Rc<Self>,
        resolved: &Resolved<'_, S>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let context = self.context(request, resolved.params.as_ref(), resolved.mount_len);
        let request = &request.within(&context);
        match resolved.target {
            Ok(target) => self.call(target, request, response),
            Err(Unmatched::Method(node)) => drop(response.unhandled_method(request, node.allow())),
            Err(Unmatched::Path) => drop(response.unhandled_target(request, "")),
        }
    }

    fn context<'a>(
        self: &'a Rc<Self>,
        request: &Request<'_>,
        params: Option<&'a Params<'a, 'a>>,
        mount_len: usize,
    ) -> RouteContext<'a, S> {
        RouteContext { worker: self, params, mount_len, is_method_known: request.is_method_known() }
    }

    fn knows_method(&self, name: &str) -> bool {
        self.table.extensions.iter().any(|known| **known == *name)
    }

    #[inline(always)]
    fn call(self: &Rc<Self>, target: &Target<S>, request: &Request<'_>, response: &mut Response<'_>) {
        match target {
            Target::Sync(handler, _) => handler(request, response, &*self.worker.state),
            Target::Deferred(index, _) => self.deferred[*index](request, response),
            Target::Mount(index) => self.services[*index].respond(request, response),
            Target::Static(index) => respond_static(&self.static_responses[*index], request, response),
            Target::Preflight(preflight) => respond_preflight(preflight, request, response),
            Target::Cors(target) => self.respond_cors(target, request, response),
        }
    }

    /// Calls a handler whose response has the field lines of a CORS policy.
    #[inline(never)]
    fn respond_cors(
        self: &Rc<Self>,
        target: &(Target<S>, ByOrigin<FieldLines>),
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        response.lines(target.1.get(&request.head()));
        match &target.0 {
            Target::Sync(handler, _) => handler(request, response, &*self.worker.state),
            Target::Deferred(index, _) => self.deferred[*index](request, response),
            _ => unreachable!("only these are wrapped"),
        }
    }
}

/// Runs the middleware behind a handler whose response was deferred.
impl<S: 'static> Around for WorkerRoutes<S> {
    fn response(self: Rc<Self>, from: u64, request: &Request<'_>, response: &mut Response<'_>) {
        let (head, middleware) = (request.head(), &self.table.parts.middleware);
        let exact = self.table.exact(head.method(), head.path_bytes());
        if let Some((node, Some(_))) = exact {
            let context = self.context(request, None, 0);
            let request = &request.within(&context);
            return self.run_after(middleware.after(node.steps()), from, request, response);
        }
        let resolved = self.table.find_inexact(exact.map(|(node, _)| node), &head);
        let context = self.context(request, resolved.params.as_ref(), 0);
        let request = &request.within(&context);
        self.run_after(middleware.matching_after(&self.with_state(request)), from, request, response);
    }
}

#[inline(never)]
fn respond_preflight(preflight: &Preflight, request: &Request<'_>, response: &mut Response<'_>) {
    response.status(204).lines(preflight.lines.get(&request.head()));
}

// Not inlined, so that calling a handler stays a single jump.
#[inline(never)]
fn respond_static(fixed: &ByOrigin<Rc<Prebuilt>>, request: &Request<'_>, response: &mut Response<'_>) {
    response.prebuilt(fixed.get(&request.head()));
}

/// Adds the router's data to a request while its handler runs.
struct RouteContext<'a, S> {
    worker: &'a Rc<WorkerRoutes<S>>,
    params: Option<&'a Params<'a, 'a>>,
    mount_len: usize,
    /// True for a standard method, and for one that an enclosing router knows.
    is_method_known: bool,
}

impl<S: 'static> Context for RouteContext<'_, S> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params?.get(name)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn knows_method(&self, name: &str) -> bool {
        self.is_method_known || self.worker.knows_method(name)
    }

    fn kept(&self) -> Option<Rc<dyn Context>> {
        let worker = Rc::clone(self.worker);
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        let params = self.params.map(|params| params.iter().map(owned).collect()).unwrap_or_default();
        let Self { mount_len, is_method_known, .. } = *self;
        Some(Rc::new(OwnedRouteContext { worker, params, mount_len, is_method_known }))
    }
}

/// An owned copy for deferred handlers.
struct OwnedRouteContext<S> {
    worker: Rc<WorkerRoutes<S>>,
    params: Vec<(Box<str>, Box<str>)>,
    mount_len: usize,
    is_method_known: bool,
}

impl<S: 'static> Context for OwnedRouteContext<S> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn knows_method(&self, name: &str) -> bool {
        self.is_method_known || self.worker.knows_method(name)
    }
}
