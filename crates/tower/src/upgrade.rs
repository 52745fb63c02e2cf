//! A connection that its client wants to speak something else on, WebSocket for example: handed over whole, its head read once more,
//! to hyper, which serves it from then on with the same service on tokio's threads. axum's own extractors work there.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::Poll;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use shearwater::{Head, Known, Version};
use tokio::sync::watch;

use crate::body::Body;
use crate::connect_info;
use crate::replayed::Replayed;
use crate::socket::Socket;
use crate::tower_service::{BoxError, HttpService};
use crate::upgrades::Permit;

/// Whether the request wants its connection upgraded (RFC 9110 section 7.8), which HTTP/1.0 doesn't know.
pub(crate) fn is_asked(head: &Head<'_>) -> bool {
    if head.field(Known::Upgrade).is_none() || head.version() == Version::Http10 {
        return false;
    }
    let options = head.all(Known::Connection).flat_map(|value| value.split(|byte| *byte == b','));
    options.map(<[u8]>::trim_ascii).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

/// A connection that was handed over.
pub(crate) struct Handed {
    pub(crate) descriptor: OwnedFd,
    /// All that was read of it: from the head of the request on.
    pub(crate) read: Vec<u8>,
    /// The client's address, where the service is to know.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) permit: Permit,
    /// Whether it is to end now.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Serves it until it has answered, is upgraded or is told to end. To be called within a runtime.
pub(crate) async fn serve<S: HttpService>(handed: Handed, service: S) {
    let Handed { descriptor, read, peer, permit, stop } = handed;
    // A client that is gone by now has nobody to tell.
    let Ok(socket) = Socket::new(descriptor) else { return };
    let connection = TokioIo::new(Replayed::new(read, socket, permit));
    let answer = service_fn(move |request| answer(service.clone(), request, peer));
    let serving = http1::Builder::new().serve_connection(connection, answer).with_upgrades();
    drive(serving, stop).await;
}

/// Answers its request. One that is not upgraded is the last: the time that a client may take for a further one is the engine's to watch.
async fn answer<S: HttpService>(
    mut service: S,
    request: Request<Incoming>,
    peer: Option<SocketAddr>,
) -> Result<Response<S::Answer>, BoxError> {
    poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
    let mut request = request.map(Body::incoming);
    if let Some(peer) = peer {
        connect_info::insert(&mut request, peer);
    }
    let mut response = service.call(request).await.map_err(Into::into)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Goes on with a connection until it has ended or is to end now. It needs no graceful shutdown, having one request only; hyper's (1.12)
/// would lose an answer that waits to be flushed.
async fn drive(serving: impl Future, mut stop: watch::Receiver<bool>) {
    let (mut serving, mut stopped) = (pin!(serving), pin!(stop.wait_for(|stop| *stop)));
    poll_fn(|cx| match serving.as_mut().poll(cx) {
        // What it has failed of concerns its client, who is gone.
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => stopped.as_mut().poll(cx).map(drop),
    })
    .await;
}
