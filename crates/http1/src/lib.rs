//! Sans-IO HTTP/1.1, the server's side: bytes in, events out.
//!
//! [`HeadParser`] parses a request head and resumes where it stopped; [`BodyDecoder`] decodes the body that
//! follows; [`encode`] writes responses. Nothing here owns a socket, a clock or a thread, and nothing
//! allocates after [`HeadParser::new`].
//!
//! The same bytes give the same result however they are split. Each error is tied to the byte that causes it
//! (a forbidden control byte, the end of an invalid line, the first byte beyond a limit), so the first result
//! other than "more" never depends on how the network split the stream.
//!
//! ```
//! use shearwater_http1::{HeadLimits, HeadParser, KnownField, Parsed};
//!
//! let request = b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n";
//! let mut parser = HeadParser::new(HeadLimits::default());
//! assert_eq!(parser.parse(&request[..20]), Ok(Parsed::Partial));
//! assert_eq!(parser.parse(request), Ok(Parsed::Complete { head_len: request.len() }));
//! let head = parser.head(request);
//! assert_eq!((head.path(), head.query(), head.host()), ("/a", Some("b"), "example.org"));
//! assert_eq!(head.field(KnownField::Accept), Some(&b"*/*"[..]));
//! ```
#![deny(unsafe_code)]

pub mod encode;
mod framing;
mod known_field;
mod limits;
pub mod media_type;
mod method;
mod parse;
mod parse_error;
mod scan;
pub mod visible;

pub use framing::{Framing, ResponseContent, ResponseFraming};
pub use known_field::KnownField;
pub use limits::{BodyLimits, HeadLimits, METHOD_BYTES_MAX};
pub use method::{Method, Version};
pub use parse::{
    BodyDecoder, BodyEvent, BodyStep, Expectation, Field, Head, HeadBuilder, HeadParser, Parsed,
    RequestParts, Target, Trailers, is_protocol, is_same_protocol, may_be_trailer,
};
pub use parse_error::ParseError;
