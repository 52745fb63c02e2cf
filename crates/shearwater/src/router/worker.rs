//! Compiled routes, and the worker that dispatches requests to them.

use std::any::{Any, TypeId};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use matchit::Params;
use shearwater_engine::tasks::Stacks;
use shearwater_engine::{
    Around, BodyPolicy, Context, FieldLines, GuardsPassed, Prebuilt, Request, Response, Service,
};
use shearwater_http1::Head;

use super::compile::{Definitions, compile};
use super::node::Node;
use super::table::{Resolved, RouteTable, Target, Unmatched};
use crate::error::RouteErrors;
use crate::fast::{ByOrigin, DynamicResponse, StaticResponse};
use crate::handlers::{self, DeferredHandler};
use crate::middleware::After;

/// The compiled routes of an [`App`](crate::App), shared by all workers. Cheap to clone.
#[derive(Clone)]
pub struct Routes(Arc<RouteTable>);

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl Routes {
    pub(crate) fn of(definitions: Definitions) -> Result<Self, RouteErrors> {
        compile(definitions).map(|table| Self(Arc::new(table)))
    }

    /// Creates the service of one worker, with its own state, mounted services and encoded responses. To be called on
    /// the worker's thread; `worker` is passed to the functions that make state and mounted services.
    #[must_use]
    pub fn service(&self, worker: usize) -> RoutesService {
        let table = Arc::clone(&self.0);
        let parts = &table.parts;
        let (deferred, stacks) = handlers::instantiate(&parts.deferred, parts.stacks);
        RoutesService(Rc::new(WorkerRoutes {
            static_responses: table.static_responses.iter().map(StaticResponse::encode).collect(),
            services: parts.services.iter().map(|make| make(worker)).collect(),
            locals: parts.locals.iter().map(|(of, make)| (*of, make(worker))).collect(),
            deferred,
            stacks,
            table,
        }))
    }
}

/// The routes of an [`App`](crate::App) on one worker.
pub struct RoutesService(Rc<WorkerRoutes>);

impl fmt::Debug for RoutesService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutesService").finish_non_exhaustive()
    }
}

struct WorkerRoutes {
    table: Arc<RouteTable>,
    static_responses: Vec<ByOrigin<Rc<Prebuilt>>>,
    services: Vec<Box<dyn Service>>,
    locals: Vec<(TypeId, Box<dyn Any>)>,
    deferred: Vec<DeferredHandler>,
    /// Stacks of its coroutines, if there are any.
    stacks: Option<Rc<Stacks>>,
}

impl Service for RoutesService {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let worker = &*self.0;
        let target = match worker.table.exact(head.method(), head.path_bytes()) {
            Some((_, Some(target))) => Ok(target),
            Some((node, None)) => worker.table.find_inexact(Some(node), head).target,
            None => worker.table.find_inexact(None, head).target,
        };
        match target {
            Ok(Target::Route(route)) => route.body,
            Ok(Target::Mount(service)) => worker.services[*service].body_policy(head),
            Ok(_) | Err(_) => BodyPolicy::Discard,
        }
    }

    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        self.0.guard(request, response).map(|(_, all)| all)
    }

    fn protocols(&self) -> Vec<String> {
        let of_routes = self.0.table.targets.iter().filter_map(|target| match target {
            Target::Route(route) => route.protocol.clone(),
            _ => None,
        });
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
        if let Some(stacks) = &self.0.stacks {
            stacks.trim();
        }
    }
}

impl WorkerRoutes {
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
            let passed = middleware.run_guards(node.steps(), request, response);
            if passed.is_none() && !response.around(self, 0) {
                self.run_after(middleware.after(node.steps()), 0, request, response);
            }
            return passed.map(|own| (own, own));
        }
        let resolved = self.table.find_inexact(exact.map(|(node, _)| node), &head);
        let context = self.context(request, resolved.params.as_ref(), 0);
        let mounted = self.context(request, None, resolved.mount_len);
        let within = request.within(&context);
        let own = middleware.run_matching_guards(&within, response);
        let passed = own.and_then(|own| match resolved.target {
            Ok(Target::Mount(index)) => {
                let request = request.within(&mounted).after_guards(own);
                Some((own, self.services[*index].guard(&request, response)?))
            }
            Ok(_) | Err(_) => Some((own, own)),
        });
        if passed.is_none() && !response.around(self, 0) {
            self.run_after(middleware.matching_after(&within), 0, &within, response);
        }
        passed
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
        if node.steps().has_guards() && self.guard(request, response).is_none() {
            return;
        }
        let context = self.context(request, None, 0);
        let (middleware, request) = (&self.table.parts.middleware, &request.within(&context));
        if middleware.run_before(node.steps(), request, response) {
            self.call(target, request, response);
        }
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
        if middleware.run_matching_before(request, response) {
            self.dispatch(&resolved, request, response);
        }
        if !response.around(self, 0) {
            self.run_after(middleware.matching_after(request), 0, request, response);
        }
    }

    /// Runs the steps after a handler from number `from` on. If one of them defers the response, the others wait.
    fn run_after<'a>(
        self: &Rc<Self>,
        steps: impl Iterator<Item = &'a After>,
        from: u64,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        for (next, step) in (1..).zip(steps).skip(from as usize) {
            step(request, response);
            if response.around(self, next) {
                return;
            }
        }
    }

    fn dispatch(
        self: &Rc<Self>,
        resolved: &Resolved<'_>,
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
    ) -> RouteContext<'a> {
        RouteContext { worker: self, params, mount_len, is_method_known: request.is_method_known() }
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        let found = self.table.parts.states.iter().find(|(known, _)| *known == of);
        found.map(|(_, state)| &**state as &dyn Any)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.locals.iter().find(|(known, _)| *known == of).map(|(_, local)| &**local)
    }

    fn knows_method(&self, name: &str) -> bool {
        self.table.extensions.iter().any(|known| **known == *name)
    }

    #[inline(always)]
    fn call(&self, target: &Target, request: &Request<'_>, response: &mut Response<'_>) {
        match target {
            Target::Route(route) => route.respond(request, response, &self.deferred),
            Target::Mount(index) => self.services[*index].respond(request, response),
            Target::Static(index) => respond_static(&self.static_responses[*index], request, response),
            Target::Dynamic(dynamic) => respond_dynamic(dynamic, request, response),
            Target::Preflight(lines) => respond_preflight(lines, request, response),
        }
    }
}

/// Runs the steps after a handler whose response was deferred.
impl Around for WorkerRoutes {
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
        self.run_after(middleware.matching_after(request), from, request, response);
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

/// Adds the router's data to a request while its handler runs.
struct RouteContext<'a> {
    worker: &'a Rc<WorkerRoutes>,
    params: Option<&'a Params<'a, 'a>>,
    mount_len: usize,
    /// True for a standard method, and for one that an enclosing router knows.
    is_method_known: bool,
}

impl Context for RouteContext<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params?.get(name)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.state(of)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.local(of)
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
struct OwnedRouteContext {
    worker: Rc<WorkerRoutes>,
    params: Vec<(Box<str>, Box<str>)>,
    mount_len: usize,
    is_method_known: bool,
}

impl Context for OwnedRouteContext {
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.state(of)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.local(of)
    }

    fn knows_method(&self, name: &str) -> bool {
        self.is_method_known || self.worker.knows_method(name)
    }
}
