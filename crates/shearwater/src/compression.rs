//! Compression of handlers' responses: a step around them.

use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::thread::available_parallelism;
use std::time::Duration;

use shearwater_compress::negotiation::{Codings, choose_coding};
use shearwater_compress::{Coding, StreamEncoder, encode_bytes, is_compressible, level_on_the_fly};
use shearwater_engine::io::os::lower_thread_priority;
use shearwater_engine::{Content, Request, Response, StreamCoder};
use shearwater_http1::KnownField;

use crate::handlers::{OffloadPool, Offloaded};

/// Longest body in memory that is compressed, in bytes.
pub const COMPRESSED_BODY_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of bodies that wait for a thread; further ones are sent as they are.
pub const COMPRESSED_BODIES_WAITING_MAX: usize = 256;

/// Longest delay of a response by compressing its body.
pub const COMPRESSED_BODY_WAIT: Duration = Duration::from_millis(20);

/// Maximum number of streams that are compressed at once, of all workers; further ones are sent as they are.
pub const COMPRESSED_STREAMS_MAX: usize = 256;

/// Content of a stream that waits for its thread, in bytes: with more, its handler waits.
const COMPRESSED_STREAM_BYTES_MAX: usize = 64 * 1024;

/// Fields of content that isn't encoded: it is already, is a part, or is described byte by byte (RFC 9530).
const UNCHANGED: [&str; 5] =
    ["Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Content-MD5"];

/// Streams that are being compressed, of all workers.
static STREAMS: AtomicUsize = AtomicUsize::new(0);

/// Threads for bodies. A body that waits for too long is sent as it is.
static BODIES: LazyLock<OffloadPool> =
    LazyLock::new(|| OffloadPool::new("compress-body", threads(), COMPRESSED_BODIES_WAITING_MAX));

/// Threads for streams. Each has at most one piece in the queue, so it is never full.
static PIECES: LazyLock<OffloadPool> =
    LazyLock::new(|| OffloadPool::new("compress-piece", threads(), COMPRESSED_STREAMS_MAX));

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Compresses the responses of handlers: a step for [`after`](crate::after).
///
/// ```
/// use shearwater::{App, Request, after, compress, get};
///
/// let app = App::new().scope("/api", |api| {
///     api.with(after(compress)).route("/list", get(|_: &Request| "one line of many\n".repeat(1000)))
/// });
/// ```
///
/// It compresses text, JSON and [similar types](shearwater_compress::is_compressible) by Brotli, Zstandard or gzip, as the
/// client prefers (RFC 9110 section 12.5.3), on threads of its own. A body in memory of 1 to 64 KiB is sent as it is if that
/// takes more than 20 ms, or doesn't make it shorter. Of a stream each piece is compressed and flushed, by Zstandard or gzip;
/// beyond [`COMPRESSED_STREAMS_MAX`] streams at once, further ones are sent as they are.
///
/// Not compressed are responses with `Content-Encoding`, `Content-Range`, a digest or `Cache-Control: no-transform`, and
/// files, which [`compress` of a folder](https://docs.rs/shearwater-files) is for. A strong `ETag` becomes a weak one, because
/// the bytes differ. `Vary: Accept-Encoding` is set whether or not a response is compressed.
///
/// Add it only to handlers whose responses don't have both a secret, such as a token against forged requests, and text that
/// an attacker can choose, such as a search term: by TLS, the length of such a response shows whether the two are alike
/// (BREACH, CVE-2013-3587).
pub fn compress<S>(request: &crate::Request<'_, S>, response: &mut Response<'_>) {
    if response.status_code() == 304 {
        // Of content that may have been compressed.
        return vary(response);
    }
    if !is_eligible(response) {
        return;
    }
    vary(response);
    match response.content() {
        Content::Bytes(content) if is_worth_it(content) => compress_body(request, response),
        Content::Stream => compress_stream(request, response),
        _ => {}
    }
}

/// Returns whether a response has content that may be encoded.
fn is_eligible(response: &Response<'_>) -> bool {
    let has = |name| response.values(name).next().is_some();
    let is_kept = response.values("Cache-Control").any(|value| has_option(value, b"no-transform"));
    let mut media_types = response.values("Content-Type");
    !matches!(response.status_code(), 204 | 205 | 206 | 304)
        && media_types.next().is_some_and(is_compressible)
        && !is_kept
        && !UNCHANGED.into_iter().any(has)
}

fn is_worth_it(content: &[u8]) -> bool {
    (shearwater_compress::limits::CONTENT_BYTES_MIN..=COMPRESSED_BODY_BYTES_MAX).contains(&content.len())
}

/// Returns whether a list has this element, which is in lower case.
fn has_option(value: &[u8], option: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|element| element.trim_ascii().eq_ignore_ascii_case(option))
}

/// Says that the response depends on `Accept-Encoding` (RFC 9110 section 12.5.5).
fn vary(response: &mut Response<'_>) {
    let says_so =
        response.values("Vary").any(|value| has_option(value, b"accept-encoding") || has_option(value, b"*"));
    if !says_so {
        response.field("Vary", "Accept-Encoding");
    }
}

/// Returns the client's preferred one of these codings.
fn coding_of(request: &Request<'_>, codings: &[Coding]) -> Option<Coding> {
    let mut available = Codings::NONE;
    codings.iter().for_each(|&coding| available.add(coding));
    choose_coding(request.head().all(KnownField::AcceptEncoding), available, codings)
}

/// Sets the fields of content that is encoded.
fn describe(response: &mut Response<'_>, coding: Coding) {
    response.remove_field("Accept-Ranges").field("Content-Encoding", coding.name());
    let tag = response.values("ETag").next().filter(|tag| !tag.starts_with(b"W/"));
    if let Some(weak) = tag.map(|tag| [b"W/", tag].concat()) {
        response.remove_field("ETag").field("ETag", weak);
    }
}

/// Compresses a body on another thread, and sends it as it is if that takes too long.
fn compress_body(request: &Request<'_>, response: &mut Response<'_>) {
    let Some(coding) = coding_of(request, &Coding::ALL).filter(|_| response.can_be_deferred()) else {
        return;
    };
    let Content::Bytes(content) = response.content() else { return };
    let content = content.to_vec();
    let len = content.len();
    let work = BODIES.offload(move || {
        lower_thread_priority();
        encode_bytes(coding, level_on_the_fly(coding), &content)
    });
    response.defer(request, move |mut call| async move {
        let mut work = pin!(work);
        let mut timeout = pin!(call.sleep(COMPRESSED_BODY_WAIT));
        let coded = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(coded) => Poll::Ready(coded.ok().and_then(Result::ok)),
            Poll::Pending => timeout.as_mut().poll(cx).map(|()| None),
        });
        if let Some(coded) = coded.await.filter(|coded| coded.len() < len) {
            let mut response = call.response();
            describe(&mut response, coding);
            response.body(coded);
        }
    });
}

/// Has a stream compressed piece by piece, unless too many are already.
fn compress_stream(request: &Request<'_>, response: &mut Response<'_>) {
    let Some(coding) = coding_of(request, &StreamEncoder::CODINGS) else { return };
    let Some((encoder, place)) = StreamEncoder::new(coding).ok().zip(StreamPlace::take()) else { return };
    let coder = || -> Box<dyn StreamCoder> {
        Box::new(Compressor {
            queue: Vec::new(),
            state: State::Idle(encoder, None),
            is_over: false,
            place: Arc::new(place),
        })
    };
    if response.code_stream(request, coder) {
        describe(response, coding);
    }
}

/// One of the streams that are compressed at once.
struct StreamPlace;

impl StreamPlace {
    fn take() -> Option<Self> {
        let before = STREAMS.fetch_add(1, Relaxed);
        let place = Self;
        (before < COMPRESSED_STREAMS_MAX).then_some(place)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Relaxed);
    }
}

/// An encoded piece with its encoder, or without it if it was the last.
type Encoded = Result<std::io::Result<(Vec<u8>, Option<StreamEncoder>)>, Offloaded>;

/// Compresses a stream piece by piece on other threads.
struct Compressor {
    /// Content that isn't with a thread yet.
    queue: Vec<u8>,
    state: State,
    is_over: bool,
    /// Kept by the piece that is with a thread, too: it is in the queue even if its client has left.
    place: Arc<StreamPlace>,
}

enum State {
    /// Waits for content, and wakes the task that takes what is encoded.
    Idle(StreamEncoder, Option<Waker>),
    /// A piece of so many bytes is with a thread.
    Busy(Pin<Box<dyn Future<Output = Encoded>>>, usize),
    /// All is encoded, or can't be.
    Done,
}

impl Compressor {
    /// Gives the queue to a thread, unless there is nothing to do or one is at work.
    fn start(&mut self) {
        if self.queue.is_empty() && !self.is_over || !matches!(self.state, State::Idle(..)) {
            return;
        }
        let State::Idle(mut encoder, waker) = mem::replace(&mut self.state, State::Done) else { return };
        let (piece, is_last) = (mem::take(&mut self.queue), self.is_over);
        let len = piece.len();
        let place = Arc::clone(&self.place);
        let work = PIECES.offload(move || {
            let _place = place;
            lower_thread_priority();
            let mut encoded = encoder.encode(&piece)?;
            if !is_last {
                return Ok((encoded, Some(encoder)));
            }
            encoded.extend(encoder.finish()?);
            Ok((encoded, None))
        });
        self.state = State::Busy(Box::pin(work), len);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl StreamCoder for Compressor {
    fn push(&mut self, content: &[u8]) {
        self.queue.extend_from_slice(content);
        self.start();
    }

    fn end(&mut self) {
        self.is_over = true;
        self.start();
    }

    fn has_room(&self) -> bool {
        self.queue.len() < COMPRESSED_STREAM_BYTES_MAX
    }

    fn poll_take(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), String>> {
        loop {
            match &mut self.state {
                State::Done => return Poll::Ready(Ok(())),
                State::Idle(_, waker) => {
                    *waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                State::Busy(work, _) => {
                    let Poll::Ready(encoded) = work.as_mut().poll(cx) else { return Poll::Pending };
                    self.state = State::Done;
                    let failed = |why: &dyn std::fmt::Display| format!("a stream can't be compressed: {why}");
                    let (encoded, encoder) =
                        encoded.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
                    out.extend_from_slice(&encoded);
                    if let Some(encoder) = encoder {
                        self.state = State::Idle(encoder, None);
                        self.start();
                    }
                }
            }
        }
    }

    fn held_bytes(&self) -> usize {
        let in_flight = if let State::Busy(_, len) = self.state { len } else { 0 };
        StreamEncoder::HELD_BYTES + self.queue.capacity() + in_flight
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::time::Duration;

    use super::{BODIES, COMPRESSED_BODIES_WAITING_MAX, COMPRESSED_BODY_WAIT, compress, threads};
    use crate::testing::Tested;
    use crate::{App, Request, after, get};

    /// Blocks threads, and queues pieces of work, until the sender is dropped.
    fn occupy(pieces: usize) -> SyncSender<()> {
        let (release, released) = sync_channel::<()>(0);
        let released = std::sync::Arc::new(std::sync::Mutex::new(released));
        for _ in 0..pieces {
            let released = std::sync::Arc::clone(&released);
            drop(BODIES.offload(move || drop(released.lock().map(|released| released.recv()))));
        }
        release
    }

    #[test]
    fn a_body_that_would_wait_too_long_is_sent_as_it_is() {
        let text = |_: &Request<'_>| "text".repeat(1000);
        let app = App::new().with(after(compress)).route("/", get(text));
        let mut tested = Tested::new(app).expect("no mistakes");
        let request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n";
        let mut client = tested.connect();
        // All threads are busy.
        let release = occupy(threads());
        client.send(request);
        tested.pass(COMPRESSED_BODY_WAIT - Duration::from_millis(1));
        assert!(client.response().is_none());
        tested.pass(Duration::from_millis(10));
        let response = client.response().expect("20 ms are over");
        assert_eq!((response.field("Content-Encoding"), response.body.len()), (None, 4000));
        // The queue is full, too.
        let more = occupy(COMPRESSED_BODIES_WAITING_MAX);
        client.send(request);
        tested.settle();
        assert_eq!(client.response().expect("at once").field("Content-Encoding"), None);
        drop((release, more));
        // The threads take a moment to empty the queue.
        assert!((0..100_000).any(|_| tested.ask(request).field("Content-Encoding") == Some("br")));
    }
}
