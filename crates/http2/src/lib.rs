//! Sans-IO HTTP/2 (RFC 9113), the server's side: bytes in, events and bytes out.
//!
//! [`Connection::receive`] finds requests, content, trailers and resets in the received bytes;
//! [`Connection::respond`], [`data`](Connection::data) and [`trailers`](Connection::trailers) write responses.
//! A request is a [`Head`](shearwater_http1::Head) of `http1`. Nothing here owns a socket, a clock or a thread.
//!
//! The same bytes give the same events however they are split, except that content may come in other pieces. The
//! client may send as much content as the caller has [consumed](Connection::consumed), and the caller may send as
//! much as [`next_data`](Connection::next_data) says. There is no push.
//!
//! ```
//! use shearwater_http2::{Connection, StreamEvent, HeadBuffer, ResponseHead, limits::Limits};
//!
//! let limits = Limits::default();
//! let (mut head, mut out) = (HeadBuffer::new(limits.head), Vec::new());
//! let mut connection = Connection::new(limits, 0, &mut out);
//! // The preface, empty SETTINGS, and a HEADERS frame: `GET https://a/`.
//! let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
//! input.extend_from_slice(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x87\x84\x41\x01a");
//! let step = connection.receive(&input, &mut head, &mut out)?;
//! let StreamEvent::Request { stream, ends: true } = step.event else { panic!("a request") };
//! assert_eq!((head.head().path(), head.head().host()), ("/", "a"));
//! let response = ResponseHead { status: 200, lines: b"Content-Type: text/plain\r\n", ..ResponseHead::default() };
//! assert!(connection.respond(stream, &response, false, &mut out));
//! assert!(connection.data(stream, b"hello", true, &mut out));
//! assert_eq!((step.consumed, connection.open_streams()), (input.len(), 0));
//! # Ok::<(), shearwater_http2::ConnectionError>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
mod connection;
mod error;
mod frame;
mod head;
mod hpack;
pub mod limits;
mod priority;
mod response;
mod scheduler;
mod stream_error;
mod streams;

pub use connection::{Connection, Preface, Step, StreamEvent};
pub use error::{ConnectionError, ErrorCode, SentCodes};
pub use frame::PREFACE;
pub use head::HeadBuffer;
pub use priority::Priority;
pub use response::{ResponseHead, encode_lines};
pub use stream_error::StreamError;
pub use streams::StreamId;
