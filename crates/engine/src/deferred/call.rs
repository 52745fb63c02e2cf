//! The handler's side of a deferred request.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use shearwater_http1::{Head, Method, ResponseFraming, Trailers};
use shearwater_tasks::{Sleep, Timers};

use crate::deferred::shared::Shared;
use crate::request::tls_session::TlsSession;
use crate::request::{ConnectionId, Request};
use crate::response::Response;
use crate::response::draft::{Body, ResponseDraft};

/// A request and its response for an async handler or a coroutine.
///
/// It owns a copy of the head, so it may be kept across awaits. Dropping it sends the response as set by
/// [`response`](Self::response), or ends the stream of [`begin`](Self::begin) and [`send`](Self::send). It
/// stays on its worker's thread.
///
/// It belongs to the future or coroutine that received it: changes from elsewhere take effect when that is
/// polled next.
///
/// The future is dropped when the connection breaks. So it is when the body is malformed, too large or too slow and
/// the response hasn't begun: the client gets a `400`, `413` or `408`.
///
/// A client that has sent a FIN may still wait for the response or be gone. The future is dropped after
/// [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms) without a send, or at once with
/// [`end_with_client`](Self::end_with_client).
pub struct Call {
    pub(crate) shared: Rc<Shared>,
    /// Response under construction; `None` once it is complete.
    draft: Option<Box<ResponseDraft>>,
    /// Piece of the body that was read last.
    piece: Vec<u8>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("head", &self.head()).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(shared: Rc<Shared>, draft: Box<ResponseDraft>) -> Self {
        Self { shared, draft: Some(draft), piece: Vec::new() }
    }

    /// Returns the head: method, target, version and fields.
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        self.shared.head()
    }

    /// Returns the method (RFC 9110 section 9).
    #[must_use]
    pub fn method(&self) -> Method {
        self.head().method()
    }

    /// Returns the target's path as it was sent, without decoding; below a mount the part after its prefix,
    /// as [`Request::path`](crate::Request::path).
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.head().path();
        self.shared.context().map_or(path, |context| path.get(context.mount_len()..).unwrap_or(""))
    }

    /// Returns a route parameter as it was sent, without decoding. `None` if the route has none of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.shared.context()?.param(name)
    }

    /// Returns the target's query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.head().query()
    }

    /// Returns the body; `None` if it was discarded or is received while the handler runs.
    #[must_use]
    pub fn kept_body(&self) -> Option<&[u8]> {
        self.shared.kept_body()
    }

    /// Returns the client's address: see [`Request::client`](crate::Request::client).
    #[must_use]
    pub fn client(&self) -> Option<SocketAddr> {
        self.shared.client()
    }

    /// Returns the address at the other end of the socket: see [`Request::peer`](crate::Request::peer).
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.shared.peer()
    }

    /// Returns true if the client has sent the request by TLS: see [`Request::is_secure`](crate::Request::is_secure).
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.shared.is_secure
    }

    /// Returns the TLS session of the request's connection: see [`Request::tls`](crate::Request::tls).
    #[must_use]
    pub fn tls(&self) -> Option<TlsSession> {
        self.shared.tls.clone()
    }

    /// Returns the connection of the request.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        self.shared.connection()
    }

    /// Returns the milliseconds of the worker's monotonic clock as of this turn. Its zero is arbitrary.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.timers().now_ms()
    }

    /// Returns the worker's timers, for waiting beyond this call.
    #[must_use]
    pub fn timers(&self) -> &Rc<Timers> {
        self.shared.timers()
    }

    /// Sleeps. Timers are checked once a turn, so it may be late by a turn's duration.
    #[must_use = "it waits when it is awaited"]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.timers().sleep(duration)
    }

    /// Drops the future and closes the connection as soon as the client sends a FIN before its response is
    /// complete. Otherwise such a client still gets its response, as HTTP allows, if that takes no longer
    /// than [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms); a closed socket can't be
    /// distinguished from it.
    pub fn end_with_client(&mut self) {
        self.shared.end_with_client();
    }

    /// Returns the request and the response under construction, for code that serves immediate requests too.
    ///
    /// The response can't be deferred again, and changes after [`begin`](Self::begin) have no effect.
    pub fn parts(&mut self) -> (Request<'_>, Response<'_>) {
        let request = self.shared.request(None).with_context(self.shared.context());
        (request, Response::resume(self.draft.get_or_insert_default()))
    }

    /// Returns the response under construction: status, fields, body. Changes after [`begin`](Self::begin)
    /// have no effect.
    pub fn response(&mut self) -> Response<'_> {
        Response::resume(self.draft.get_or_insert_default())
    }
}

impl Drop for Call {
    /// Completes the response.
    fn drop(&mut self) {
        self.shared.end(self.draft.take());
    }
}

impl Call {
    /// Returns the next piece of the body, never empty; `None` at its end. Requires
    /// [`BodyPolicy::Call`](crate::BodyPolicy::Call): any other body is buffered or discarded. At most
    /// [`CALL_INPUT_BYTES_MAX`](crate::limits::CALL_INPUT_BYTES_MAX) are received ahead of the handler.
    ///
    /// # Panics
    /// If there was a body and the policy is another: the client gets a `500`.
    pub async fn read(&mut self) -> Option<&[u8]> {
        let is_some = std::future::poll_fn(|cx| self.poll_piece(cx)).await;
        is_some.then_some(&*self.piece)
    }

    /// As [`read`](Self::read).
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<&[u8]>> {
        self.poll_piece(cx).map(|is_some| is_some.then_some(&*self.piece))
    }

    /// As [`read`](Self::read), but returns the piece by value.
    pub fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.poll_piece(cx).map(|is_some| is_some.then(|| std::mem::take(&mut self.piece)))
    }

    /// Returns the whole body, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// The part that was read if it is longer; reading may continue.
    pub async fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(piece) = self.read().await {
            whole.extend_from_slice(piece);
            if whole.len() > bytes_max {
                return Err(whole);
            }
        }
        Ok(whole)
    }

    /// Returns the request's trailer fields (RFC 9110 section 6.5): none before the body was
    /// [read](Self::read) to its end.
    ///
    /// Fields that belong before the content are left out ([`may_be_trailer`](shearwater_http1::may_be_trailer)):
    /// they would bypass the checks of the head. Trailers of a body that the handler doesn't read
    /// itself are discarded. At most 32 lines with 8 KiB are accepted.
    #[must_use]
    pub fn trailers(&self) -> Trailers<'_> {
        match self.piece.is_empty() {
            true => self.shared.trailers(),
            // There may be more after this piece.
            false => Trailers::default(),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.shared.take(&mut self.piece, cx.waker()) {
            Some(true) => Poll::Ready(true),
            Some(false) => {
                if let Some(help) = self.shared.why_unread() {
                    panic!("the body of this request can't be read by its handler; help: {help}");
                }
                Poll::Ready(false)
            }
            None => Poll::Pending,
        }
    }
}

/// Error of sending to a disconnected client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client is disconnected")
    }
}

impl std::error::Error for Gone {}

impl Call {
    /// Sends the head now. The body follows by [`send`](Self::send), with exactly `length` bytes or, with
    /// `None`, of unknown length (chunked, RFC 9112 section 7.1; for an HTTP/1.0 client until the connection
    /// closes).
    ///
    /// A body set before by [`response`](Self::response) is discarded. A stream that ends before its length
    /// is truncated, and its connection closed; bytes beyond it are discarded. Both are reported to the
    /// operator.
    ///
    /// If the response has no body (for `HEAD`, or with `204`, `205` or `304`), the future is dropped at its next await.
    pub fn begin(&mut self, length: Option<u64>) {
        if let Some(mut draft) = self.draft.take() {
            let framing = ResponseFraming::of(length, self.head().version());
            Response::resume(&mut draft).set_body(Body::Stream(framing));
            self.shared.begin(draft, framing);
        }
    }

    /// Waits until bytes may be [pushed](Self::push): until less than
    /// [`CALL_OUTPUT_BYTES_MAX`](crate::limits::CALL_OUTPUT_BYTES_MAX) are queued.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        match self.shared.has_output_room(cx.waker()) {
            _ if self.shared.is_gone() => Poll::Ready(Err(Gone)),
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Queues bytes, whether or not there is room. Begins a stream of unknown length if none was begun.
    pub fn push(&mut self, bytes: &[u8]) {
        self.begin(None);
        self.shared.push(bytes);
    }

    /// Sends a piece of the body; waits until there is room for it.
    ///
    /// # Errors
    /// [`Gone`], if the client is disconnected. Usually the worker drops the handler's future instead.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        std::future::poll_fn(|cx| self.poll_room(cx)).await?;
        self.push(bytes);
        Ok(())
    }

    /// Adds a trailer field (RFC 9110 section 6.5), which is sent after the body of a stream: in HTTP/1.1 one of unknown
    /// length, in HTTP/2 any.
    ///
    /// Trailers are sent whether or not the request has `TE: trailers`: an HTTP/1.1 client has to read them in
    /// any case, and without that field it, or a proxy, may drop them (RFC 9110 section 6.5.1). So nothing that
    /// the client needs belongs here, unless it sends `TE: trailers`. The header `Trailer` may announce them; it
    /// isn't required. They are dropped without a body, and in HTTP/1 if the body isn't sent in chunks: with a known
    /// length, and for HTTP/1.0.
    ///
    /// An invalid field (see [`Response::field`]) aborts the response as [`cut`](Self::cut) does. So does one that
    /// clients need before the content, such as `Content-Type` or `Set-Cookie`.
    pub fn push_trailer(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        self.shared.push_trailer(name, value.as_ref());
        self
    }

    /// Aborts the response: a stream is truncated and its connection closed; any other response becomes a
    /// `500`.
    ///
    /// `why` is reported to the operator and not sent to the client.
    pub fn cut(self, why: impl Into<String>) {
        self.cut_at_end(why);
    }

    /// As [`cut`](Self::cut), when it is dropped.
    pub fn cut_at_end(&self, why: impl Into<String>) {
        self.shared.cut(why.into());
    }
}
