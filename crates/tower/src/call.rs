//! A request that is answered later: from its call to a service, and the service's answer back to the call.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, StatusCode};
use http_body::{Body as HttpBody, Frame};
use shearwater::{Call, Gone};

use crate::answer::{Answer, Rest};
use crate::body::Body;
use crate::handshake::{self, Handshake};
use crate::intake::{Announced, Intake};
use crate::limits::PIECE_BYTES_MAX;
use crate::seat::Seat;
use crate::spare::Spare;
use crate::tower_service::{BoxError, HttpService};

/// Has a service answer a call, for which it need not be ready yet. `request` is that of the call, still without its body.
pub(crate) async fn begin<S: HttpService>(
    mut call: Call,
    request: Request<Body>,
    announced: Announced,
    handshake: Option<Box<Handshake>>,
    mut service: S,
    spare: Rc<Spare<S>>,
) {
    if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
        return call.cut(why("the service is not ready", error));
    }
    let begin = |cx: &mut Context<'_>| Intake::begin(&mut call, announced, &mut spare.heads.borrow_mut(), cx);
    let (body, intake) = now(begin).await;
    let answering = spare.answering.take(service.call(request.map(|_| body)));
    go_on(call, intake, answering, handshake, spare).await;
}

/// Answers a call as a service does that is at work on it.
///
/// One that fails is a `500`, and so is an answer's body that fails before anything of it is sent; later its connection is cut off.
pub(crate) async fn go_on<S: HttpService>(
    mut call: Call,
    mut intake: Intake,
    answering: Seat<S::Answering>,
    handshake: Option<Box<Handshake>>,
    spare: Rc<Spare<S>>,
) {
    let mut waiting = Some((answering, handshake));
    // What is gone before the next wait stays within: it takes no room in what waits.
    let answered = poll_fn(|cx| {
        let (seat, _) = waiting.as_mut().expect("it is polled until it is ready");
        let answered = ready!(intake.alongside(&mut call, cx, |_, cx| seat.get().poll(cx)));
        // Whatever it holds is let go of before its answer's body is asked.
        let handshake = waiting.take().and_then(|(seat, handshake)| {
            spare.answering.put(seat);
            handshake
        });
        Poll::Ready(answered.map_err(failed).and_then(|response| match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                handshake::accept(handshake, &mut call, response, &spare).map(|()| None)
            }
            _ => Ok(tell(&mut call, &mut intake, response, &spare, cx)),
        }))
    })
    .await;
    match answered {
        Ok(None) => {}
        Ok(Some(rest)) => stream(call, intake, rest, spare).await,
        Err(why) => call.cut(why),
    }
}

/// Tells an answer, or begins it; gives the rest that is to be streamed.
fn tell<S: HttpService>(
    call: &mut Call,
    intake: &mut Intake,
    response: http::Response<S::Answer>,
    spare: &Spare<S>,
    cx: &mut Context<'_>,
) -> Option<Rest<S>> {
    let mut answer = Answer::new(response, call.method(), spare);
    answer.look(|mut body| intake.alongside(call, cx, |_, cx| body.as_mut().poll_frame(cx)));
    answer.tell(&mut call.response(), spare)?.begin(call, spare)
}

/// Sends what is left of a body whose head is on its way.
pub(crate) async fn stream<S: HttpService>(
    mut call: Call,
    mut intake: Intake,
    rest: Rest<S>,
    spare: Rc<Spare<S>>,
) {
    let Rest { mut body, mut next } = rest;
    loop {
        let frame = match next {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                poll_fn(|cx| intake.alongside(&mut call, cx, |_, cx| body.get().poll_frame(cx))).await
            }
        };
        next = Poll::Pending;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => break,
            Some(Err(error)) => return call.cut(why("the body of an answer has failed", error)),
            Some(Ok(Ok(data))) => {
                if let Err(gone) = push(&mut call, &mut intake, data).await {
                    return call.cut(gone.to_string());
                }
            }
            // Trailers, which few clients look at, and which this server doesn't announce.
            Some(Ok(Err(_))) => {}
        }
    }
    spare.bodies.put(body);
}

/// Sends a piece as its client takes it.
async fn push(call: &mut Call, intake: &mut Intake, mut data: impl Buf) -> Result<(), Gone> {
    while data.has_remaining() {
        poll_fn(|cx| intake.alongside(call, cx, Call::poll_room)).await?;
        let chunk = data.chunk();
        let len = chunk.len().min(PIECE_BYTES_MAX);
        call.push(&chunk[..len]);
        data.advance(len);
    }
    Ok(())
}

/// What the operator is told of a service that gives no answer.
pub(crate) fn failed(error: impl Into<BoxError>) -> String {
    why("the service has failed", error)
}

fn why(what: &str, error: impl Into<BoxError>) -> String {
    format!("{what}: {}", error.into())
}

/// Calls `look` once with the task's context, and returns its result without waiting.
async fn now<T>(mut look: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|cx| Poll::Ready(look(cx))).await
}
