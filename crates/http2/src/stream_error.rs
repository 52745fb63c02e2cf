//! Reasons why a stream is reset, and why a request is malformed (RFC 9113 8.1.1).

use std::fmt;

use shearwater_http1::ParseError;

use crate::error::ErrorCode;

macro_rules! stream_errors {
    ($($variant:ident $code:ident $rfc:literal $sentence:literal)*) => {
        /// Reason why this side has reset a stream. Its RST_STREAM has been written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StreamError {
            $(#[doc = concat!($sentence, " (", $rfc, ")")] $variant,)*
            /// A part of the head is malformed as in HTTP/1.
            Head(ParseError),
        }

        impl StreamError {
            /// Returns the code of the RST_STREAM.
            #[must_use]
            pub fn code(self) -> ErrorCode {
                match self { $(Self::$variant => ErrorCode::$code,)* Self::Head(_) => ErrorCode::ProtocolError }
            }

            /// Returns the broken rule, such as `RFC 9113 8.3`, or the limit.
            #[must_use]
            pub fn rfc(self) -> &'static str {
                match self { $(Self::$variant => $rfc,)* Self::Head(error) => error.rfc() }
            }

            /// Returns the variant's name, for logs and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* Self::Head(error) => error.name() }
            }
        }

        impl fmt::Display for StreamError {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => formatter.write_str($sentence),)*
                    Self::Head(error) => error.fmt(formatter),
                }
            }
        }
    };
}

stream_errors! {
    PseudoFieldRepeated ProtocolError "RFC 9113 8.3" "A pseudo-field occurs twice."
    PseudoFieldUnknown ProtocolError "RFC 9113 8.3" "A pseudo-field isn't one of requests."
    PseudoFieldLate ProtocolError "RFC 9113 8.3" "A pseudo-field follows a field."
    PseudoFieldMissing ProtocolError "RFC 9113 8.3.1" "A request has no `:method`, `:scheme` or `:path`."
    PseudoFieldForbidden ProtocolError "RFC 9113 8.5" "A CONNECT or a trailer section has a pseudo-field that it must not have."
    PseudoFieldEmpty ProtocolError "RFC 9113 8.3.1" "A pseudo-field is empty."
    Scheme ProtocolError "RFC 9113 8.3.1" "`:scheme` isn't a scheme."
    Path ProtocolError "RFC 9113 8.3.1" "`:path` is neither a path nor `*`."
    Protocol ProtocolError "RFC 8441 4" "`:protocol` isn't in a CONNECT, or isn't enabled."
    UppercaseName ProtocolError "RFC 9113 8.2.1" "A field name has an upper-case letter."
    SurroundingSpace ProtocolError "RFC 9113 8.2.1" "A field value begins or ends with a space."
    ConnectionSpecific ProtocolError "RFC 9113 8.2.2" "A field belongs to a connection."
    Te ProtocolError "RFC 9113 8.2.2" "`te` has another value than `trailers`."
    HostDiffers ProtocolError "RFC 9113 8.3.1" "`host` differs from `:authority`."
    Length ProtocolError "RFC 9113 8.1.1" "The content's length isn't the one that was announced."
    TrailersWithoutEnd ProtocolError "RFC 9113 8.1" "A trailer section doesn't end its stream."
    Ended StreamClosed "RFC 9113 5.1" "A frame follows the end of its stream."
    WindowExceeded FlowControlError "RFC 9113 6.9.1" "More content was sent than the stream's window allows."
    WindowIncrement ProtocolError "RFC 9113 6.9" "The stream's window is increased by 0."
    WindowOverflow FlowControlError "RFC 9113 6.9.1" "The stream's window is larger than 2^31 - 1."
    TooManyStreams RefusedStream "limit" "More streams are open, or have begun in a turn, than the limit."
}

impl std::error::Error for StreamError {}
