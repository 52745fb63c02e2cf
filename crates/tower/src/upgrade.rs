//! A connection that its client wants to speak something else on, WebSocket for example: handed over whole, its head read once more,
//! to hyper, which serves it from then on with the same service on tokio's threads. axum's own extractors work there.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::Poll;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use shearwater::{Head, Known};
use tokio::sync::watch;

use crate::body::Body;
use crate::connect_info;
use crate::replayed::Replayed;
use crate::socket::Socket;
use crate::tower_service::{BoxError, HttpService};
use crate::upgrades::{Order, Permit};

/// Whether the request wants its connection upgraded (RFC 9110 section 7.8).
pub(crate) fn is_asked(head: &Head<'_>) -> bool {
    if head.field(Known::Upgrade).is_none() {
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
}

/// Serves it until it ends, is upgraded or is told to end. To be called within a runtime.
pub(crate) async fn serve<S: HttpService>(handed: Handed, service: S) {
    let Handed { descriptor, read, peer, permit } = handed;
    let orders = permit.orders();
    // A client that is gone by now has nobody to tell.
    let Ok(socket) = Socket::new(descriptor) else { return };
    let connection = TokioIo::new(Replayed::new(read, socket, permit));
    let answer = service_fn(move |request| answer(service.clone(), request, peer));
    let serving = http1::Builder::new().serve_connection(connection, answer).with_upgrades();
    drive(serving, orders).await;
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

/// A connection that can be told to end behind the request at hand.
trait Ending: Future {
    fn end(self: Pin<&mut Self>);
}

impl<I, B, S> Ending for http1::UpgradeableConnection<I, S>
where
    Self: Future,
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Goes on with a connection until it has ended, and does what it is told meanwhile.
async fn drive(serving: impl Ending, mut orders: watch::Receiver<Order>) {
    let mut serving = pin!(serving);
    orders.mark_changed(); // the order may have been given already
    loop {
        let told = {
            let mut changed = pin!(orders.changed());
            poll_fn(|cx| match serving.as_mut().poll(cx) {
                Poll::Ready(_) => Poll::Ready(None),
                Poll::Pending => changed.as_mut().poll(cx).map(Some),
            })
            .await
        };
        let order = told.map(|told| told.map_or(Order::Stop, |()| *orders.borrow_and_update()));
        match order {
            Some(Order::Serve) => {}
            Some(Order::Drain) => serving.as_mut().end(),
            // What it has failed of concerns its client, who is gone.
            Some(Order::Stop) | None => return,
        }
    }
}
