//! One request: from its call to a service, and the service's answer back to the call.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame};
use shearwater::{Call, Gone, Method};

use crate::head_pool::HeadPool;
use crate::intake::{Announced, Intake};
use crate::limits::{PIECE_BYTES_MAX, WHOLE_BODY_BYTES_MAX};
use crate::response_head;
use crate::tower_service::{BoxError, HttpService};

/// What polling a body gives.
type Polled<B> = Poll<Option<Result<Frame<<B as HttpBody>::Data>, <B as HttpBody>::Error>>>;

/// Has a service answer a call. `head` is that of the call's request.
///
/// The service is dropped as soon as its client has gone or ended its side. One that fails is a `500`, and so is an answer's body that fails before anything of it is sent; later its connection is cut off.
pub(crate) async fn answer<S: HttpService>(
    mut call: Call,
    head: Request<()>,
    announced: Announced,
    mut service: S,
    pool: Rc<RefCell<HeadPool>>,
) {
    // Whoever has closed a socket looks like that, and a service that waits for somebody should know.
    call.end_with_client();
    if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
        return call.cut(why("the service is not ready", error));
    }
    let begin = |cx: &mut Context<'_>| Intake::begin(&mut call, announced, &mut pool.borrow_mut(), cx);
    let (body, mut intake) = now(begin).await;
    let answered = {
        let mut answering = pin!(service.call(head.map(|()| body)));
        poll_fn(|cx| intake.alongside(&mut call, cx, |_, cx| answering.as_mut().poll(cx))).await
    };
    match answered {
        Ok(response) => send(call, intake, response, &pool).await,
        Err(error) => call.cut(why("the service has failed", error)),
    }
}

/// What the operator is told.
fn why(what: &str, error: impl Into<BoxError>) -> String {
    format!("{what}: {}", error.into())
}

/// Sends an answer, and feeds the request's body meanwhile.
async fn send<B: HttpBody<Error: Into<BoxError>>>(
    mut call: Call,
    mut intake: Intake,
    response: Response<B>,
    pool: &RefCell<HeadPool>,
) {
    let (parts, body) = response.into_parts();
    let declared = response_head::set(&mut call.response(), parts.status, &parts.headers);
    pool.borrow_mut().put(parts.headers);
    let mut body = pin!(body);
    let length = exact(&body);
    if call.method() == Method::Head {
        return call.begin(declared.length.or(length.filter(|length| *length > 0)));
    }
    if body.is_end_stream() || !has_body(parts.status) {
        return;
    }
    let first = now(|cx| intake.alongside(&mut call, cx, |_, cx| body.as_mut().poll_frame(cx))).await;
    if let Some(whole) = whole::<B>(&first, length, body.is_end_stream()) {
        call.response().body(whole);
        return;
    }
    call.begin(length.or(declared.length));
    stream(call, intake, body, first).await;
}

/// Sends what is left of a body whose head is on its way.
async fn stream<B: HttpBody<Error: Into<BoxError>>>(
    mut call: Call,
    mut intake: Intake,
    mut body: Pin<&mut B>,
    first: Polled<B>,
) {
    let mut next = first;
    loop {
        let frame = match next {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                poll_fn(|cx| intake.alongside(&mut call, cx, |_, cx| body.as_mut().poll_frame(cx))).await
            }
        };
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return,
            Some(Err(error)) => return call.cut(why("the body of an answer has failed", error)),
            Some(Ok(Ok(data))) => {
                if push(&mut call, &mut intake, data).await.is_err() {
                    return;
                }
            }
            // Trailers, which few clients look at, and which this server doesn't announce.
            Some(Ok(Err(_))) => {}
        }
        next = Poll::Pending;
    }
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

/// What there is now.
async fn now<T>(mut look: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|cx| Poll::Ready(look(cx))).await
}

/// The first piece, if it is the whole body and small enough to leave with the head.
fn whole<B: HttpBody>(first: &Polled<B>, length: Option<u64>, is_last: bool) -> Option<&[u8]> {
    let Poll::Ready(Some(Ok(frame))) = first else { return None };
    let data = frame.data_ref()?;
    let chunk = data.chunk();
    let is_all = chunk.len() == data.remaining() && (is_last || length == Some(chunk.len() as u64));
    (is_all && chunk.len() <= WHOLE_BODY_BYTES_MAX).then_some(chunk)
}

/// Whether an answer with this status has a body (RFC 9110 section 6.4.1).
fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// How long a body is that says so.
fn exact(body: &impl HttpBody) -> Option<u64> {
    body.size_hint().exact()
}
