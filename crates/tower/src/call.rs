//! Deferred requests: from a call to the service, and from its response back to the call.

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, StatusCode};
use http_body::Body as HttpBody;
use shearwater::Gone;
use shearwater::engine::Call;
use tokio::task::coop::poll_proceed;

use crate::body::{Body, ExpectedBody, RequestBody};
use crate::limits::PIECE_BYTES_MAX;
use crate::response::{PendingResponse, RemainingBody, push_trailers};
use crate::service::{BoxError, HttpService};
use crate::upgrades::{self, Handshake};
use crate::worker_pool::{PinnedSlot, WorkerPool};

/// Calls a service that need not be ready yet. `request` is the call's, without its body if that is yet to come.
pub(crate) async fn begin<S: HttpService>(
    mut call: Call,
    mut request: Request<Body>,
    expected: Option<ExpectedBody>,
    handshake: Option<Box<Handshake>>,
    mut service: S,
    pool: Rc<WorkerPool<S>>,
) {
    if let Err(error) = poll_fn(|cx| pool.budget.scope(cx, |cx| service.poll_ready(cx))).await {
        return call.cut(message("the service is not ready", error));
    }
    let mut request_body = RequestBody::NONE;
    if let Some(expected) = expected {
        let begin =
            |cx: &mut Context<'_>| RequestBody::begin(&mut call, expected, &mut pool.heads.borrow_mut(), cx);
        (*request.body_mut(), request_body) = poll_once(begin).await;
    }
    let future = pool.futures.take(service.call(request));
    resume(call, request_body, future, handshake, pool).await;
}

/// Polls a service's future and sends its response.
///
/// An error of the service, or of the body before its first byte, becomes a `500`; a later one closes the connection.
pub(crate) async fn resume<S: HttpService>(
    mut call: Call,
    mut request_body: RequestBody,
    future: PinnedSlot<S::ResponseFuture>,
    handshake: Option<Box<Handshake>>,
    pool: Rc<WorkerPool<S>>,
) {
    let mut waiting = Some((future, handshake));
    // Done inside the closure, so that temporary values add nothing to the size of the future.
    let mut poll = |cx: &mut Context<'_>| {
        let (future, _) = waiting.as_mut().expect("not polled after completion");
        let output = ready!(request_body.poll_with(&mut call, cx, |_, cx| future.get().poll(cx)));
        // The future is dropped before the response's body is polled.
        let handshake = waiting.take().and_then(|(future, handshake)| {
            pool.futures.put(future);
            handshake
        });
        Poll::Ready(output.map_err(failed).and_then(|response| match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                upgrades::accept(handshake, &mut call, response, &pool).map(|()| None)
            }
            status if status.is_success() && handshake.is_some() && accepts_connect(&call, &response) => {
                upgrades::accept(handshake, &mut call, response, &pool).map(|()| None)
            }
            _ => Ok(send(&mut call, &mut request_body, response, &pool, cx)),
        }))
    };
    match poll_fn(|cx| pool.budget.scope(cx, &mut poll)).await {
        Ok(None) => {}
        Ok(Some(rest)) => stream(call, request_body, rest, pool).await,
        Err(why) => call.cut(why),
    }
}

/// Returns true if a successful response accepts an extended CONNECT (RFC 8441): it has no content.
fn accepts_connect<B: HttpBody>(call: &Call, response: &http::Response<B>) -> bool {
    call.head().protocol().is_some() && response.body().is_end_stream()
}

/// Sends a response, or begins it and returns the rest of its body.
fn send<S: HttpService>(
    call: &mut Call,
    request_body: &mut RequestBody,
    response: http::Response<S::ResponseBody>,
    pool: &WorkerPool<S>,
    cx: &mut Context<'_>,
) -> Option<RemainingBody<S>> {
    let (method, version) = (call.method(), call.head().version());
    let pending = PendingResponse::new(response, method, version, pool, |mut body| {
        request_body.poll_with(call, cx, |_, cx| body.as_mut().poll_frame(cx))
    });
    pending.send_whole(&mut call.response(), pool)?.begin(call, pool)
}

/// Sends the rest of a body whose head has been sent.
pub(crate) async fn stream<S: HttpService>(
    mut call: Call,
    mut request_body: RequestBody,
    rest: RemainingBody<S>,
    pool: Rc<WorkerPool<S>>,
) {
    let RemainingBody { mut body, mut next } = rest;
    let mut piece = None;
    let mut poll = |cx: &mut Context<'_>| -> Poll<Result<(), String>> {
        loop {
            if let Some(data) = &mut piece {
                ready!(poll_push(&mut call, &mut request_body, data, cx)).map_err(|gone| gone.to_string())?;
            }
            // Frames that are empty or short don't wait for the client.
            ready!(poll_proceed(cx)).made_progress();
            let frame = match mem::replace(&mut next, Poll::Pending) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(request_body.poll_with(&mut call, cx, |_, cx| body.get().poll_frame(cx)))
                }
            };
            let Some(frame) = frame else { return Poll::Ready(Ok(())) };
            let frame = frame.map_err(|error| message("the body of a response failed", error))?;
            piece = match frame.into_data() {
                Ok(data) => Some(data),
                Err(frame) => {
                    frame.into_trailers().iter().for_each(|trailers| push_trailers(&mut call, trailers));
                    None
                }
            };
        }
    };
    match poll_fn(|cx| pool.budget.scope(cx, &mut poll)).await {
        Ok(()) => pool.bodies.put(body),
        Err(why) => call.cut(why),
    }
}

/// Sends a piece as the client takes it.
fn poll_push(
    call: &mut Call,
    request_body: &mut RequestBody,
    data: &mut impl Buf,
    cx: &mut Context<'_>,
) -> Poll<Result<(), Gone>> {
    while data.has_remaining() {
        ready!(request_body.poll_with(call, cx, Call::poll_room))?;
        let chunk = data.chunk();
        let len = chunk.len().min(PIECE_BYTES_MAX);
        call.push(&chunk[..len]);
        data.advance(len);
    }
    Poll::Ready(Ok(()))
}

/// Returns the message to log about a service that failed.
pub(crate) fn failed(error: impl Into<BoxError>) -> String {
    message("the service failed", error)
}

fn message(what: &str, error: impl Into<BoxError>) -> String {
    format!("{what}: {}", error.into())
}

/// Calls `poll` once with the task's context, and returns its result without waiting.
async fn poll_once<T>(mut poll: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}
