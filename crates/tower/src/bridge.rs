//! What a worker calls: makes a task of each request, in which the service answers it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::{BodyPolicy, Framing, Head, Request, Response, Service};
use tokio::runtime::Handle;

use crate::call;
use crate::connect_info;
use crate::head_pool::HeadPool;
use crate::intake::Announced;
use crate::request_head;
use crate::runtime::Entered;
use crate::tower_service::HttpService;
use crate::upgrade::{self, Handed};
use crate::upgrades::Upgrades;

/// What all workers' bridges are made of.
pub(crate) struct Plan<S> {
    pub(crate) service: S,
    /// Whether the service is told where requests come from.
    pub(crate) tells_peer: bool,
    pub(crate) upgrades: Arc<Upgrades>,
    pub(crate) handle: &'static Handle,
}

/// One worker's.
pub(crate) struct Bridge<S> {
    plan: Plan<S>,
    pool: Rc<RefCell<HeadPool>>,
    /// What tokio's sockets and timers look for.
    _entered: Entered,
}

impl<S: HttpService> Bridge<S> {
    /// To be called on the worker's own thread.
    pub(crate) fn new(plan: Plan<S>) -> Self {
        let entered = Entered::new(plan.handle);
        Self { plan, pool: Rc::new(RefCell::new(HeadPool::new())), _entered: entered }
    }

    fn answer_later(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        let made = request_head::request(&head, (), &mut self.pool.borrow_mut());
        let mut made = match made {
            Ok(made) => made,
            Err(unfit) => {
                response.status(unfit.0).text(unfit.why());
                return;
            }
        };
        let announced = Announced::by(&head);
        response.later(request, |call| {
            if self.plan.tells_peer
                && let Some(peer) = call.peer()
            {
                connect_info::insert(&mut made, peer);
            }
            call::answer(call, made, announced, self.plan.service.clone(), Rc::clone(&self.pool))
        });
    }

    fn hand_over(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let Some(permit) = self.plan.upgrades.enter() else {
            response.status(503).text("Too many connections are upgraded.\n");
            return;
        };
        let peer = if self.plan.tells_peer { request.peer() } else { None };
        let (service, handle) = (self.plan.service.clone(), self.plan.handle);
        response.hand_over(move |handed| {
            let mut read = handed.head;
            read.extend_from_slice(&handed.unread);
            let handed = Handed { descriptor: handed.descriptor, read, peer, permit };
            handle.spawn(upgrade::serve(handed, service));
        });
    }
}

impl<S: HttpService> Service for Bridge<S> {
    fn body_policy(&self, _: &Head<'_>) -> BodyPolicy {
        BodyPolicy::Call
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        if upgrade::is_asked(&head) && head.framing() == Framing::None {
            self.hand_over(request, response);
        } else {
            self.answer_later(request, response);
        }
    }
}
