//! Responses of services: sent whole if the body is ready, else begun and streamed.

use std::pin::Pin;
use std::task::Poll;

use bytes::Buf;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::{Body as HttpBody, Frame};
use shearwater::engine::{Call, ResponseContent, Version, may_be_trailer};
use shearwater::{Method, Response};

use crate::limits::WHOLE_BODY_BYTES_MAX;
use crate::service::HttpService;
use crate::worker_pool::{PinnedSlot, WorkerPool};

/// The result of polling a body.
pub(crate) type Polled<B> = Poll<Option<Result<Frame<<B as HttpBody>::Data>, <B as HttpBody>::Error>>>;

/// A response of which nothing has been sent.
pub(crate) struct PendingResponse<S: HttpService> {
    head: Parts,
    /// The body's length in bytes, if known.
    length: Option<u64>,
    /// The body, or `None` if the response has none or doesn't send it.
    body: Option<PinnedSlot<S::ResponseBody>>,
    /// The result of the body's first poll.
    first: Polled<S::ResponseBody>,
    /// The body has ended with its first frame.
    is_last: bool,
    /// Trailers are announced or ready, or may follow the content.
    has_trailers: bool,
    /// The body's trailers, if they were ready after its only piece.
    trailers: Option<Box<HeaderMap>>,
    is_head_only: bool,
}

/// The rest of a body whose head has been sent, with the next frame if it was already polled.
pub(crate) struct RemainingBody<S: HttpService> {
    pub(crate) body: PinnedSlot<S::ResponseBody>,
    pub(crate) next: Polled<S::ResponseBody>,
}

impl<S: HttpService> PendingResponse<S> {
    /// Wraps the response to a request, and calls `poll` for the first frame of its body.
    pub(crate) fn new(
        response: http::Response<S::ResponseBody>,
        method: Method,
        version: Version,
        pool: &WorkerPool<S>,
        mut poll: impl FnMut(Pin<&mut S::ResponseBody>) -> Polled<S::ResponseBody>,
    ) -> Self {
        let (head, body) = response.into_parts();
        let length = body.size_hint().exact();
        let is_head_only = method == Method::Head;
        let is_sent = ResponseContent::of(method, head.status.as_u16()).is_whole();
        let mut body = (is_sent && !body.is_end_stream()).then(|| pool.bodies.take(body));
        let mut first = Poll::Pending;
        let (mut is_last, mut has_trailers, mut trailers) = (true, false, None);
        if let Some(body) = &mut body {
            first = poll(body.get());
            is_last = body.get().is_end_stream();
            if !is_last {
                has_trailers = head.headers.contains_key(header::TRAILER);
                // A body that has its length may still have trailers.
                if !has_trailers && has_all(&first, length) {
                    match poll(body.get()) {
                        Poll::Ready(Some(Ok(frame))) => {
                            trailers = frame.into_trailers().ok().map(Box::new);
                            has_trailers = trailers.is_some();
                        }
                        // HTTP/2 needn't know of trailers when the head is sent.
                        Poll::Pending => has_trailers = version == Version::Http2,
                        Poll::Ready(_) => {}
                    }
                }
            }
        }
        Self { head, length, body, first, is_last, has_trailers, trailers, is_head_only }
    }

    /// Sends the whole response if its body is ready. Otherwise sends nothing and returns it.
    pub(crate) fn send_whole(mut self, response: &mut Response<'_>, pool: &WorkerPool<S>) -> Option<Self> {
        if self.is_head_only || self.has_trailers {
            return Some(self);
        }
        response.body(b"");
        if let Some(body) = self.body.take() {
            let Some(whole) = whole::<S::ResponseBody>(&self.first, self.length, self.is_last) else {
                self.body = Some(body);
                return Some(self);
            };
            response.body(whole);
            pool.bodies.put(body);
        }
        send_head(self.head, response, pool);
        None
    }

    /// Sends the head. Returns `None` if no body follows.
    pub(crate) fn begin(self, call: &mut Call, pool: &WorkerPool<S>) -> Option<RemainingBody<S>> {
        let declared = length(&self.head.headers);
        let version = call.head().version();
        let has_trailers = (self.has_trailers || is_trailers(&self.first)) && version != Version::Http10;
        // In HTTP/1, only chunks have room for trailers.
        let is_chunked = has_trailers && version == Version::Http11;
        if has_trailers {
            for value in self.head.headers.get_all(header::TRAILER) {
                call.response().field("Trailer", value);
            }
        }
        send_head(self.head, &mut call.response(), pool);
        let Some(body) = self.body else {
            call.begin(declared.or(self.length.filter(|length| *length > 0)));
            return None;
        };
        call.begin(if is_chunked { None } else { self.length.or(declared) });
        self.trailers.iter().for_each(|trailers| push_trailers(call, trailers));
        Some(RemainingBody { body, next: self.first })
    }
}

/// Sends trailers after the body. Fields that can't be trailers are dropped.
pub(crate) fn push_trailers(call: &mut Call, trailers: &HeaderMap) {
    for (name, value) in trailers {
        if may_be_trailer(name.as_str()) {
            call.push_trailer(name.as_str(), value);
        }
    }
}

fn is_trailers<D, E>(polled: &Poll<Option<Result<Frame<D>, E>>>) -> bool {
    matches!(polled, Poll::Ready(Some(Ok(frame))) if frame.is_trailers())
}

/// Sets status and fields, and returns the header map to the pool.
pub(crate) fn send_head<S: HttpService>(head: Parts, response: &mut Response<'_>, pool: &WorkerPool<S>) {
    set(response, head.status, &head.headers);
    pool.heads.borrow_mut().put(head.headers);
}

/// Returns true if the first piece is as long as the body.
fn has_all<D: Buf, E>(first: &Poll<Option<Result<Frame<D>, E>>>, length: Option<u64>) -> bool {
    let Poll::Ready(Some(Ok(frame))) = first else { return false };
    frame.data_ref().is_some_and(|data| length == Some(data.remaining() as u64))
}

/// Returns the first piece if it is the whole body and short enough to send with the head.
fn whole<B: HttpBody>(first: &Polled<B>, length: Option<u64>, is_last: bool) -> Option<&[u8]> {
    let Poll::Ready(Some(Ok(frame))) = first else { return None };
    let data = frame.data_ref()?;
    let chunk = data.chunk();
    let is_all = chunk.len() == data.remaining() && (is_last || length == Some(chunk.len() as u64));
    (is_all && chunk.len() <= WHOLE_BODY_BYTES_MAX).then_some(chunk)
}

/// Sets status and fields.
///
/// The engine decides framing and connection handling (RFC 9110 section 7.6.1, RFC 9112 section 6):
///
/// - `Content-Length` is used only for a body of unknown length, or one that isn't sent (`HEAD`);
/// - in HTTP/1, `Connection: close` closes the connection, and for `Upgrade` the engine sends the option `upgrade`; other options,
///   `Keep-Alive`, `Proxy-Connection` and `Transfer-Encoding` are dropped;
/// - `Trailer` is sent only before trailers, which in HTTP/1 make the body chunked whatever its length;
/// - `Date` and `Server` are set by the engine; those of the service are dropped.
fn set(response: &mut Response<'_>, status: StatusCode, fields: &HeaderMap) {
    response.status(final_status(status));
    for (name, value) in fields {
        match *name {
            header::CONNECTION => {
                if has_close(value) {
                    response.close();
                }
            }
            header::CONTENT_LENGTH
            | header::DATE
            | header::SERVER
            | header::TRAILER
            | header::TRANSFER_ENCODING => {}
            _ if matches!(name.as_str(), "keep-alive" | "proxy-connection") => {}
            _ => {
                response.field(name.as_str(), value);
            }
        }
    }
}

/// Returns the body's length in bytes from `Content-Length`, if there is exactly one and it is a number.
fn length(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let is_number = value.as_bytes().iter().all(u8::is_ascii_digit);
    if is_number { value.to_str().ok()?.parse().ok() } else { None }
}

fn has_close(value: &HeaderValue) -> bool {
    let options = value.as_bytes().split(|byte| *byte == b',');
    options.map(<[u8]>::trim_ascii).any(|option| option.eq_ignore_ascii_case(b"close"))
}

/// Returns 500 for a status that isn't a final one (RFC 9110 section 15).
fn final_status(status: StatusCode) -> u16 {
    if (200..600).contains(&status.as_u16()) { status.as_u16() } else { 500 }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode, header};

    use super::{final_status, has_close, length};

    #[test]
    fn reads_a_content_length_only_if_it_is_one_number() {
        for (values, expected) in [
            (&["0"][..], Some(0)),
            (&["18446744073709551615"], Some(u64::MAX)),
            (&["18446744073709551616"], None),
            (&["+1"], None),
            (&["1, 1"], None),
            (&[""], None),
            (&["1", "1"], None),
            (&[], None),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(header::CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            assert_eq!(length(&fields), expected, "{values:?}");
        }
    }

    #[test]
    fn finds_close_among_other_connection_options() {
        for (value, expected) in [
            ("close", true),
            ("Close", true),
            ("upgrade,  close ", true),
            ("keep-alive", false),
            ("closed", false),
            ("", false),
        ] {
            assert_eq!(has_close(&HeaderValue::from_static(value)), expected, "{value:?}");
        }
    }

    #[test]
    fn replaces_a_status_that_is_not_final_with_500() {
        for (status, expected) in
            [(100, 500), (101, 500), (199, 500), (200, 200), (299, 299), (599, 599), (600, 500), (999, 500)]
        {
            let status = StatusCode::from_u16(status).expect("a number of three digits");
            assert_eq!(final_status(status), expected);
        }
    }
}
