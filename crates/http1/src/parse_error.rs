//! Reasons to reject a request: one variant per reason, with its status and the violated rule.

use std::fmt;

macro_rules! parse_errors {
    ($($variant:ident $status:literal $rfc:literal $sentence:literal)*) => {
        /// Reason to reject a request. The connection can't be used for another request afterwards.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum ParseError {
            $(#[doc = concat!($sentence, " (", $rfc, "; status ", stringify!($status), ")")] $variant,)*
        }

        impl ParseError {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the status of the response: 400, 414, 431, 501 or 505.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Returns the violated rule, for example `RFC 9112 5.1`.
            pub fn rfc(self) -> &'static str {
                match self { $(Self::$variant => $rfc,)* }
            }

            /// Returns the variant's name, for logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }

        impl fmt::Display for ParseError {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self { $(Self::$variant => $sentence,)* })
            }
        }
    };
}

parse_errors! {
    BareLf 400 "RFC 9112 2.2" "A line ends with LF alone instead of CRLF."
    BareCr 400 "RFC 9112 2.2" "A CR is not followed by LF."
    ExtraEmptyLine 400 "RFC 9112 2.2" "More than one empty line precedes the request line."
    NotAMethod 400 "RFC 9110 9.1" "The request line does not begin with a method."
    MalformedRequestLine 400 "RFC 9112 3" "The request line is not a method, a target and a version with one space between them."
    ControlInRequestLine 400 "RFC 9112 3" "The request line contains a control character."
    MethodTooLong 501 "RFC 9112 3" "The method is longer than any that is implemented."
    TargetTooLong 414 "RFC 9112 3" "The request target is longer than the limit."
    InvalidTargetByte 400 "RFC 9112 3.2" "The request target contains a control character, a space, a `#`, or a byte that isn't UTF-8."
    InvalidTarget 400 "RFC 9112 3.2" "The request target has none of the four forms that the method allows."
    InvalidTargetAuthority 400 "RFC 9112 3.2.2" "The authority of the request target is not a host with an optional port."
    InvalidConnectTarget 400 "RFC 9112 3.2.3" "The target of CONNECT is not a host and a port."
    AsteriskWithoutOptions 400 "RFC 9112 3.2.4" "The target `*` is only for OPTIONS."
    PathAboveRoot 400 "RFC 3986 5.2.4" "The path has more `..` segments than segments to remove."
    InvalidVersion 400 "RFC 9112 2.3" "The version is not `HTTP/`, a digit, a dot and a digit."
    UnsupportedVersion 505 "RFC 9110 15.6.6" "The major version of HTTP is not 1."
    HeadTooLarge 431 "RFC 6585 5" "The request head is larger than the limit."
    TooManyFields 431 "RFC 6585 5" "The request has more fields than the limit."
    ObsFold 400 "RFC 9112 5.2" "A field line begins with whitespace."
    MissingColon 400 "RFC 9112 5" "A field line has no colon."
    SpaceBeforeColon 400 "RFC 9112 5.1" "A field name and its colon are separated by whitespace."
    InvalidFieldName 400 "RFC 9110 5.1" "A field name is not a token."
    ControlInField 400 "RFC 9110 5.5" "A field line contains a control character."
    MissingHost 400 "RFC 9112 3.2" "An HTTP/1.1 request has no Host."
    DuplicateHost 400 "RFC 9112 3.2" "The request has more than one Host."
    InvalidHost 400 "RFC 9112 3.2" "The Host is not a host with an optional port."
    TransferEncodingAndContentLength 400 "RFC 9112 6.1" "The request has both Transfer-Encoding and Content-Length."
    DuplicateContentLength 400 "RFC 9112 6.3" "The request has more than one Content-Length."
    InvalidContentLength 400 "RFC 9110 8.6" "The Content-Length is not a decimal number below 2^64."
    TransferEncodingInHttp10 400 "RFC 9112 6.1" "An HTTP/1.0 request has a Transfer-Encoding."
    InvalidTransferEncoding 400 "RFC 9112 6.1" "The Transfer-Encoding is not a list of codings, or `chunked` is repeated or has parameters."
    ChunkedNotLast 400 "RFC 9112 6.3" "`chunked` is not the last transfer coding."
    UnknownTransferCoding 501 "RFC 9112 6.1" "A transfer coding other than `chunked` is asked for."
    InvalidChunkSize 400 "RFC 9112 7.1" "A chunk size is not a hexadecimal number."
    ChunkSizeOverflow 400 "RFC 9112 7.1" "A chunk size is 2^64 or more."
    InvalidChunkExtension 400 "RFC 9112 7.1.1" "A chunk size is followed by something other than extensions and CRLF."
    ChunkLineTooLong 400 "RFC 9112 7.1.1" "A chunk's size line is longer than the limit."
    MissingChunkEnd 400 "RFC 9112 7.1" "A chunk's data is not followed by CRLF."
    TrailersTooLarge 431 "RFC 6585 5" "The trailers are larger than the limit."
    TooManyTrailers 431 "RFC 6585 5" "The message has more trailers than the limit."
    InvalidTrailer 400 "RFC 9112 7.1.2" "A trailer line is not a field name, a colon and a value."
}

impl std::error::Error for ParseError {}
