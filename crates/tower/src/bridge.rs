//! A worker's bridge: calls the service for each request, immediately if it is ready, else as a task.

use std::future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use http::StatusCode;
use http::uri::Scheme;
use http_body::Body as HttpBody;
use shearwater::engine::{BodyPolicy, Call, Head, Request, Version};
use shearwater::{Response, Service};
use tokio::runtime::Handle;
use tower_service::Service as _;

use crate::body::{Body, ExpectedBody, RequestBody};
use crate::response::PendingResponse;
use crate::service::{HttpService, Maker};
use crate::upgrades::{self, Handshake, Upgrades};
use crate::worker_pool::WorkerPool;
use crate::{call, request_head};

/// Facts that requests get as extensions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inserted {
    /// The client's address.
    pub(crate) peer: bool,
    /// The TLS session and the scheme.
    pub(crate) tls: bool,
}

/// The bridge of one worker.
pub(crate) struct Bridge<M: Maker> {
    maker: M,
    inserted: Inserted,
    upgrades: Arc<Upgrades>,
    body_bytes_max: u64,
    pool: Rc<WorkerPool<M::Service>>,
}

impl<M: Maker> Bridge<M> {
    /// Creates the bridge on the worker's thread, which has entered a runtime.
    pub(crate) fn new(maker: M, inserted: Inserted, upgrades: Arc<Upgrades>, body_bytes_max: u64) -> Self {
        let pool = Rc::new(WorkerPool::new(&Handle::current()));
        Self { maker, inserted, upgrades, body_bytes_max, pool }
    }

    /// Returns the body of a request, unless it is yet to arrive.
    fn arrived_body(&self, request: &Request<'_>, expected: ExpectedBody) -> Option<Body> {
        if expected.is_none() {
            return Some(Body::empty());
        }
        let bytes = request.kept_body()?;
        Some(Body::whole(self.pool.heads.borrow_mut().copy(bytes)))
    }

    /// Prepares an upgrade if the request offers a registered protocol, has no body, and the limit isn't reached.
    fn handshake(
        &self,
        head: &Head<'_>,
        expected: ExpectedBody,
        made: &mut http::Request<Body>,
    ) -> Option<Box<Handshake>> {
        if !self.upgrades.are_offered(head) || !expected.is_none() {
            return None;
        }
        let (handshake, on_upgrade) = Handshake::begin(self.upgrades.enter()?)?;
        made.extensions_mut().insert(on_upgrade);
        Some(Box::new(handshake))
    }

    /// Polls the future once, since most are ready at the first poll and the request needn't be kept.
    fn respond_immediately(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        future: <M::Service as HttpService>::ResponseFuture,
    ) {
        let mut waiting = Some(self.pool.futures.take(future));
        // One budget for the future and its response's body.
        let polled = response.poll_first(|cx| {
            self.pool.budget.scope(cx, |cx| {
                let future = waiting.as_mut().expect("not polled after completion");
                let output = ready!(future.get().poll(cx));
                // The future is dropped before the response's body is polled.
                waiting.take().into_iter().for_each(|future| self.pool.futures.put(future));
                Poll::Ready(output.map_err(call::failed).and_then(|output| {
                    if output.status() == StatusCode::SWITCHING_PROTOCOLS {
                        return Err(upgrades::NOT_OFFERED.to_owned());
                    }
                    let poll = |body: Pin<&mut _>| HttpBody::poll_frame(body, cx);
                    let version = request.head().version();
                    Ok(PendingResponse::new(output, request.method(), version, &self.pool, poll))
                }))
            })
        });
        match (polled, waiting) {
            (Some(Poll::Ready(Ok(pending))), _) => self.send(request, response, pending),
            (Some(Poll::Ready(Err(why))), _) => response.defer(request, |call| {
                call.cut(why);
                future::ready(())
            }),
            (Some(Poll::Pending), Some(future)) => {
                let pool = Rc::clone(&self.pool);
                response.defer(request, |call| {
                    call::resume(until_gone(call), RequestBody::NONE, future, None, pool)
                });
            }
            // The request has been rejected.
            (Some(Poll::Pending) | None, _) => {}
        }
    }

    fn send(&self, request: &Request<'_>, response: &mut Response<'_>, pending: PendingResponse<M::Service>) {
        let Some(pending) = pending.send_whole(response, &self.pool) else { return };
        let pool = Rc::clone(&self.pool);
        response.defer(request, |call| {
            let mut call = until_gone(call);
            let rest = pending.begin(&mut call, &pool);
            async move {
                if let Some(rest) = rest {
                    call::stream(call, RequestBody::NONE, rest, pool).await;
                }
            }
        });
    }
}

impl<M: Maker> Service for Bridge<M> {
    fn body_policy(&self, _: &Head<'_>) -> BodyPolicy {
        BodyPolicy::Pass { bytes_max: self.body_bytes_max }
    }

    fn has_guards(&self) -> bool {
        false
    }

    fn protocols(&self) -> Vec<String> {
        self.upgrades.protocols_of_streams()
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let head = request.head();
        let scheme = (head.version() == Version::Http2).then(|| scheme_of(request));
        let made = request_head::request(&head, scheme, Body::empty(), &mut self.pool.heads.borrow_mut());
        let mut made = match made {
            Ok(made) => made,
            Err((status, message)) => {
                response.status(status).text(message);
                return;
            }
        };
        let needs_peer = self.inserted.peer || M::NEEDS_PEER;
        let peer = if needs_peer { response.client(request) } else { None };
        if let Some(peer) = peer
            && self.inserted.peer
        {
            insert_peer(&mut made, peer);
        }
        if self.inserted.tls {
            insert_tls(&mut made, request);
        }
        #[cfg(feature = "http2")]
        if let Some(protocol) = head.protocol() {
            made.extensions_mut().insert(hyper::ext::Protocol::from(protocol));
        }
        let Some(mut service) = self.maker.make(peer) else {
            response.status(500).text("The client has no address.\n");
            return;
        };
        let expected = ExpectedBody::from_head(&head);
        let handshake = self.handshake(&head, expected, &mut made);
        let body = self.arrived_body(request, expected);
        let is_whole = body.is_some();
        *made.body_mut() = body.unwrap_or_default();
        // The usual case: the service is ready, and nothing of the request is yet to come.
        if is_whole && handshake.is_none() && is_ready(&mut service) {
            return self.respond_immediately(request, response, service.call(made));
        }
        let expected = (!is_whole).then_some(expected);
        let pool = Rc::clone(&self.pool);
        response
            .defer(request, |call| call::begin(until_gone(call), made, expected, handshake, service, pool));
    }
}

/// Returns true if a service is ready without waiting.
fn is_ready<S: HttpService>(service: &mut S) -> bool {
    matches!(service.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

/// Drops the service's future when the client closes its side.
///
/// A closed socket and a half-closed one look the same.
fn until_gone(mut call: Call) -> Call {
    call.end_with_client();
    call
}

fn scheme_of(request: &Request<'_>) -> Scheme {
    if request.is_secure() { Scheme::HTTPS } else { Scheme::HTTP }
}

/// Adds the TLS session and the scheme to a request.
fn insert_tls<B>(made: &mut http::Request<B>, request: &Request<'_>) {
    made.extensions_mut().insert(scheme_of(request));
    if let Some(session) = request.tls() {
        made.extensions_mut().insert(session);
    }
}

/// Adds the client's address to a request: axum's `ConnectInfo`, or a `SocketAddr` without the feature `axum`.
fn insert_peer<B>(request: &mut http::Request<B>, peer: SocketAddr) {
    #[cfg(feature = "axum")]
    let peer = axum::extract::ConnectInfo(peer);
    request.extensions_mut().insert(peer);
}
