//! What a worker calls: has the service answer each request, at once where it can, else as a task.

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::StatusCode;
use http_body::Body as _;
use shearwater::{BodyPolicy, Call, Head, Request, Response, Service};
use tokio::runtime::Handle;
use tower_service::Service as _;

use crate::answer::Answer;
use crate::body::Body;
use crate::call;
use crate::connect_info;
use crate::handshake::{self, Handshake};
use crate::intake::{Announced, Intake};
use crate::make_service::Maker;
use crate::request_head;
use crate::runtime;
use crate::spare::Spare;
use crate::tower_service::HttpService;
use crate::upgrades::Upgrades;

/// What all workers' bridges are made of.
pub(crate) struct Plan<M> {
    pub(crate) maker: M,
    /// Whether the service is told where requests come from.
    pub(crate) tells_peer: bool,
    pub(crate) upgrades: Arc<Upgrades>,
    /// What tokio's sockets and timers look for.
    pub(crate) handle: Handle,
}

/// One worker's.
pub(crate) struct Bridge<M: Maker> {
    plan: Plan<M>,
    spare: Rc<Spare<M::Service>>,
}

impl<M: Maker> Bridge<M> {
    /// To be called on the worker's own thread, which enters the runtime.
    pub(crate) fn new(plan: Plan<M>) -> Self {
        runtime::enter(&plan.handle);
        Self { plan, spare: Rc::new(Spare::new()) }
    }

    fn answer(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        let made = request_head::request(&head, Body::empty(), &mut self.spare.heads.borrow_mut());
        let mut made = match made {
            Ok(made) => made,
            Err(unfit) => {
                response.status(unfit.0).text(unfit.why());
                return;
            }
        };
        let needs_peer = self.plan.tells_peer || M::NEEDS_PEER;
        let peer = if needs_peer { response.peer(request) } else { None };
        if let Some(peer) = peer
            && self.plan.tells_peer
        {
            connect_info::insert(&mut made, peer);
        }
        let Some(mut service) = self.plan.maker.make(peer) else {
            response.status(500).text("The client has no address.\n");
            return;
        };
        let announced = Announced::by(&head);
        let handshake = self.handshake(&head, announced, &mut made);
        // Nearly all are ready, and have no body to wait for.
        if announced.is_none() && handshake.is_none() && is_ready(&mut service) {
            return self.answer_at_once(request, response, service.call(made));
        }
        let spare = Rc::clone(&self.spare);
        response
            .later(request, |call| call::begin(until_gone(call), made, announced, handshake, service, spare));
    }

    /// Lets the service upgrade the connection, if the request offers a registered protocol and has no body, and the bound on upgraded
    /// connections isn't reached.
    fn handshake(
        &self,
        head: &Head<'_>,
        announced: Announced,
        made: &mut http::Request<Body>,
    ) -> Option<Box<Handshake>> {
        if !self.plan.upgrades.are_offered(head) || !announced.is_none() {
            return None;
        }
        let (handshake, on_upgrade) = Handshake::begin(self.plan.upgrades.enter()?)?;
        made.extensions_mut().insert(on_upgrade);
        Some(Box::new(handshake))
    }

    /// Most services answer when they are polled for the first time: then there is nothing to keep of the request.
    fn answer_at_once(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        answering: <M::Service as HttpService>::Answering,
    ) {
        let mut answering = self.spare.answering.take(answering);
        let answered = match response.look(|cx| answering.get().poll(cx)) {
            Some(Poll::Ready(answered)) => answered,
            Some(Poll::Pending) => {
                let spare = Rc::clone(&self.spare);
                return response.later_when_woken(request, |call| {
                    call::go_on(until_gone(call), Intake::NONE, answering, None, spare)
                });
            }
            None => return,
        };
        self.spare.answering.put(answering);
        match answered.map_err(call::failed) {
            Ok(answer) if answer.status() != StatusCode::SWITCHING_PROTOCOLS => {
                self.tell(request, response, answer);
            }
            unfit => response.later(request, |call| {
                call.cut(unfit.err().unwrap_or_else(|| handshake::NOT_OFFERED.to_owned()));
                ready(())
            }),
        }
    }

    fn tell(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        answer: http::Response<<M::Service as HttpService>::Answer>,
    ) {
        let mut answer = Answer::new(answer, request.method(), &self.spare);
        answer.look(|body| response.look(|cx| body.poll_frame(cx)).unwrap_or(Poll::Pending));
        let Some(answer) = response.tell(|response| answer.tell(response, &self.spare)) else { return };
        let spare = Rc::clone(&self.spare);
        response.later(request, |call| {
            let mut call = until_gone(call);
            let rest = answer.begin(&mut call, &spare);
            async move {
                if let Some(rest) = rest {
                    call::stream(call, Intake::NONE, rest, spare).await;
                }
            }
        });
    }
}

impl<M: Maker> Service for Bridge<M> {
    fn body_policy(&self, _: &Head<'_>) -> BodyPolicy {
        BodyPolicy::Call
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        self.answer(request, response);
    }
}

/// Whether a service is ready at once. One that isn't must be asked again, by who can be woken.
fn is_ready<S: HttpService>(service: &mut S) -> bool {
    matches!(service.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

/// Has a call's service dropped as soon as its client has gone or ended its side. Whoever has closed a socket looks like that, and a service
/// that waits for somebody should know.
fn until_gone(mut call: Call) -> Call {
    call.end_with_client();
    call
}
