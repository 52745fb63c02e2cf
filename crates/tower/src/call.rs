//! Deferred requests: from a call to the service, and from its response back to the call.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, StatusCode};
use http_body::{Body as HttpBody, Frame};
use shearwater::{Call, Gone};

use crate::body::{Body, ExpectedBody, RequestBody};
use crate::limits::PIECE_BYTES_MAX;
use crate::response::{PendingResponse, RemainingBody};
use crate::service::{BoxError, HttpService};
use crate::upgrades::{self, Handshake};
use crate::worker_pool::{PinnedSlot, WorkerPool};

/// Calls a service that need not be ready yet. `request` is the call's, still without its body.
pub(crate) async fn begin<S: HttpService>(
    mut call: Call,
    request: Request<Body>,
    expected: ExpectedBody,
    handshake: Option<Box<Handshake>>,
    mut service: S,
    pool: Rc<WorkerPool<S>>,
) {
    if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
        return call.cut(message("the service is not ready", error));
    }
    let begin =
        |cx: &mut Context<'_>| RequestBody::begin(&mut call, expected, &mut pool.heads.borrow_mut(), cx);
    let (body, request_body) = poll_once(begin).await;
    let future = pool.futures.take(service.call(request.map(|_| body)));
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
    let output = poll_fn(|cx| {
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
            _ => Ok(send(&mut call, &mut request_body, response, &pool, cx)),
        }))
    })
    .await;
    match output {
        Ok(None) => {}
        Ok(Some(rest)) => stream(call, request_body, rest, pool).await,
        Err(why) => call.cut(why),
    }
}

/// Sends a response, or begins it and returns the rest of its body.
fn send<S: HttpService>(
    call: &mut Call,
    request_body: &mut RequestBody,
    response: http::Response<S::ResponseBody>,
    pool: &WorkerPool<S>,
    cx: &mut Context<'_>,
) -> Option<RemainingBody<S>> {
    let method = call.method();
    let pending = PendingResponse::new(response, method, pool, |mut body| {
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
    loop {
        let frame = match next {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                poll_fn(|cx| request_body.poll_with(&mut call, cx, |_, cx| body.get().poll_frame(cx))).await
            }
        };
        next = Poll::Pending;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => break,
            Some(Err(error)) => return call.cut(message("the body of a response failed", error)),
            Some(Ok(Ok(data))) => {
                if let Err(gone) = push(&mut call, &mut request_body, data).await {
                    return call.cut(gone.to_string());
                }
            }
            // Trailers are dropped: few clients read them, and the engine doesn't announce them.
            Some(Ok(Err(_))) => {}
        }
    }
    pool.bodies.put(body);
}

/// Sends a piece as the client takes it.
async fn push(call: &mut Call, request_body: &mut RequestBody, mut data: impl Buf) -> Result<(), Gone> {
    while data.has_remaining() {
        poll_fn(|cx| request_body.poll_with(call, cx, Call::poll_room)).await?;
        let chunk = data.chunk();
        let len = chunk.len().min(PIECE_BYTES_MAX);
        call.push(&chunk[..len]);
        data.advance(len);
    }
    Ok(())
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
