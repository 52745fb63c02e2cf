//! An app's routes, and how a worker answers with them.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::{BodyPolicy, BodySink, FieldLines, Prebuilt, Request, Response};
use shearwater_http1::Head;

use crate::by_origin::ByOrigin;
use crate::encoded::{Block, Written};
use crate::later::CallLater;
use crate::node::Node;
use crate::plan::{Answerer, Found, Plan, Target, What};
use crate::states::{Locals, States};
use crate::view::View;
use crate::{App, RouteErrors, Service, later, planning};

/// The routes of an [`App`], checked. Cheap to clone.
#[derive(Clone)]
pub struct Routes(Arc<Plan>);

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl Routes {
    pub(crate) fn of(app: App) -> Result<Self, RouteErrors> {
        planning::plan(app).map(|plan| Self(Arc::new(plan)))
    }

    /// A worker's own, made on its thread: with its state, its mounted services and its copies of what is encoded. `worker` is the number
    /// that those are made with.
    #[must_use]
    pub fn service(&self, worker: usize) -> RoutesService {
        let plan = Arc::clone(&self.0);
        RoutesService(Rc::new(Worker {
            blocks: plan.blocks.iter().map(Block::held).collect(),
            services: plan.services.iter().map(|make| make(worker)).collect(),
            locals: Locals::made(&plan.locals, worker),
            later: later::made(&plan.later, plan.stacks),
            plan,
        }))
    }
}

/// The routes of an [`App`], as one worker answers with them.
pub struct RoutesService(Rc<Worker>);

impl fmt::Debug for RoutesService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutesService").finish_non_exhaustive()
    }
}

pub(crate) struct Worker {
    plan: Arc<Plan>,
    blocks: Vec<ByOrigin<Rc<Prebuilt>>>,
    services: Vec<Box<dyn Service>>,
    locals: Locals,
    later: Vec<CallLater>,
}

impl Service for RoutesService {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match self.0.body_policy(head) {
            BodyPolicy::Stream(sink) => {
                BodyPolicy::Stream(Box::new(Sink { worker: Rc::clone(&self.0), sink }))
            }
            policy => policy,
        }
    }

    #[inline]
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let worker = &self.0;
        let plan = &*worker.plan;
        let head = request.head();
        match plan.exact(head.method(), head.path_bytes()) {
            Some((node, Some(target))) if node.is_bare => worker.call(target, request, response),
            Some((node, Some(target))) => worker.respond_exact(node, target, request, response),
            Some((node, None)) => worker.respond_elsewhere(Some(node), request, response),
            None => match plan.everything {
                Some(Answerer::Fallback(target)) => worker.call(&plan.targets[target], request, response),
                Some(Answerer::Mount(service)) => worker.services[service].respond(request, response),
                None => worker.respond_elsewhere(None, request, response),
            },
        }
    }
}

/// A sink whose answer takes the same way as a handler's.
struct Sink {
    worker: Rc<Worker>,
    sink: Box<dyn BodySink>,
}

impl BodySink for Sink {
    fn data(&mut self, bytes: &[u8]) -> Result<(), u16> {
        self.sink.data(bytes)
    }

    fn finish(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        let found = self.worker.plan.find(&head);
        self.worker.respond_found(&found, request, response, Some(&mut *self.sink));
    }
}

impl Worker {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match self.plan.find(head).what {
            What::Target(Target::Route(route)) => route.body_policy(),
            What::Mount { service, .. } => self.services[service].body_policy(head),
            What::Target(_) | What::NoMethod(_) | What::Nothing => BodyPolicy::Discard,
        }
    }

    /// Answers with the target of an exact path, with what runs around it.
    #[inline(never)]
    fn respond_exact(
        self: &Rc<Self>,
        node: &Node,
        target: &Target,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let view = self.view(request, None, 0);
        let around = &self.plan.middleware;
        around.around_known(node.steps(), &request.within(&view), response, |request, response| {
            self.call(target, request, response);
        });
    }

    /// Finds what answers where no exact path does, and answers.
    #[inline(never)]
    fn respond_elsewhere(
        self: &Rc<Self>,
        exact: Option<&Node>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let head = request.head();
        let found = self.plan.elsewhere(exact, &head);
        self.respond_found(&found, request, response, None);
    }

    /// Answers with what was found, with what runs around it. A sink that has taken the body answers in its handler's place.
    fn respond_found(
        self: &Rc<Self>,
        found: &Found<'_>,
        request: &Request<'_>,
        response: &mut Response<'_>,
        sink: Option<&mut dyn BodySink>,
    ) {
        let middleware = &self.plan.middleware;
        if middleware.is_empty() {
            return self.answer(found, request, response, sink);
        }
        let view = self.view(request, found.params.as_ref(), 0);
        middleware.around(&request.within(&view), response, |request, response| {
            self.answer(found, request, response, sink);
        });
    }

    fn answer(
        self: &Rc<Self>,
        found: &Found<'_>,
        request: &Request<'_>,
        response: &mut Response<'_>,
        sink: Option<&mut dyn BodySink>,
    ) {
        let mount_len = if let What::Mount { prefix_len, .. } = found.what { prefix_len } else { 0 };
        let view = self.view(request, found.params.as_ref(), mount_len);
        let request = &request.within(&view);
        match (&found.what, sink) {
            (What::NoMethod(node), _) => drop(response.unhandled_method(request, node.allow())),
            (What::Nothing, _) => drop(response.unhandled_target(request, "")),
            (What::Target(_) | What::Mount { .. }, Some(sink)) => sink.finish(request, response),
            (What::Target(target), None) => self.call(target, request, response),
            (What::Mount { service, .. }, None) => self.services[*service].respond(request, response),
        }
    }

    fn view<'a>(
        self: &'a Rc<Self>,
        request: &Request<'_>,
        params: Option<&'a matchit::Params<'a, 'a>>,
        mount_len: usize,
    ) -> View<'a> {
        View { worker: self, params, mount_len, is_method_known: request.is_method_known() }
    }

    pub(crate) fn knows_method(&self, name: &str) -> bool {
        self.plan.extensions.iter().any(|known| **known == *name)
    }

    pub(crate) fn states(&self) -> &States {
        &self.plan.states
    }

    pub(crate) fn locals(&self) -> &Locals {
        &self.locals
    }

    #[inline(always)]
    fn call(&self, target: &Target, request: &Request<'_>, response: &mut Response<'_>) {
        match target {
            Target::Route(route) => route.respond(request, response, &self.later),
            Target::Block(block) => answer_block(&self.blocks[*block], request, response),
            Target::Written(written) => answer_written(written, request, response),
            Target::Preflight(lines) => answer_preflight(lines, request, response),
        }
    }
}

// Not inlined, as those behind it: then a call of a handler is no more than a jump.
#[inline(never)]
fn answer_block(block: &ByOrigin<Rc<Prebuilt>>, request: &Request<'_>, response: &mut Response<'_>) {
    response.prebuilt(block.get(&request.head()));
}

#[inline(never)]
fn answer_written(written: &Written, request: &Request<'_>, response: &mut Response<'_>) {
    written.respond(&request.head(), response);
}

#[inline(never)]
fn answer_preflight(lines: &ByOrigin<FieldLines>, request: &Request<'_>, response: &mut Response<'_>) {
    response.status(204).lines(lines.get(&request.head()));
}
