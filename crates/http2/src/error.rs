//! Error codes (RFC 9113 7), and the reasons why a connection or a stream fails.

use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident $code:literal $name:literal)*) => {
        /// An error code of RST_STREAM and GOAWAY (RFC 9113 7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant = $code,)*
        }

        impl ErrorCode {
            /// All codes, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Number of codes.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the code with this number; an unknown one counts as `INTERNAL_ERROR` (RFC 9113 7).
            #[must_use]
            pub fn from_number(number: u32) -> Self {
                match number { $($code => Self::$variant,)* _ => Self::InternalError }
            }

            /// Returns the name in RFC 9113, such as `PROTOCOL_ERROR`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

/// Counts of sent frames, by number of their [`ErrorCode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCodes {
    /// RST_STREAM frames.
    pub resets: [u32; ErrorCode::COUNT],
    /// GOAWAY frames.
    pub go_aways: [u32; ErrorCode::COUNT],
}

error_codes! {
    /// No error: a graceful end.
    NoError 0x0 "NO_ERROR"
    /// A rule was broken that has no code of its own.
    ProtocolError 0x1 "PROTOCOL_ERROR"
    /// An error of this side.
    InternalError 0x2 "INTERNAL_ERROR"
    /// More content than a window allows, or a window beyond 2^31 - 1.
    FlowControlError 0x3 "FLOW_CONTROL_ERROR"
    /// SETTINGS weren't acknowledged in time.
    SettingsTimeout 0x4 "SETTINGS_TIMEOUT"
    /// A frame for a stream that has ended.
    StreamClosed 0x5 "STREAM_CLOSED"
    /// A frame of a wrong size.
    FrameSizeError 0x6 "FRAME_SIZE_ERROR"
    /// The request wasn't processed; it may be sent again.
    RefusedStream 0x7 "REFUSED_STREAM"
    /// The stream isn't needed any more.
    Cancel 0x8 "CANCEL"
    /// A header block can't be decoded.
    CompressionError 0x9 "COMPRESSION_ERROR"
    /// The connection of a CONNECT was reset.
    ConnectError 0xA "CONNECT_ERROR"
    /// The peer causes more work than is allowed.
    EnhanceYourCalm 0xB "ENHANCE_YOUR_CALM"
    /// The transport isn't secure enough.
    InadequateSecurity 0xC "INADEQUATE_SECURITY"
    /// HTTP/1.1 is required.
    Http11Required 0xD "HTTP_1_1_REQUIRED"
}

macro_rules! connection_errors {
    ($($variant:ident $code:ident $rfc:literal $sentence:literal)*) => {
        /// Reason why a connection failed. Its GOAWAY has been written; nothing else can be received.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ConnectionError {
            $(#[doc = concat!($sentence, " (", $rfc, ")")] $variant,)*
        }

        impl ConnectionError {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the code of the GOAWAY.
            #[must_use]
            pub fn code(self) -> ErrorCode {
                match self { $(Self::$variant => ErrorCode::$code,)* }
            }

            /// Returns the broken rule, such as `RFC 9113 6.5`, or the limit.
            #[must_use]
            pub fn rfc(self) -> &'static str {
                match self { $(Self::$variant => $rfc,)* }
            }

            /// Returns the variant's name, for logs and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }

        impl fmt::Display for ConnectionError {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self { $(Self::$variant => $sentence,)* })
            }
        }
    };
}

connection_errors! {
    BadPreface ProtocolError "RFC 9113 3.4" "The connection doesn't begin with the preface and SETTINGS."
    FrameTooLarge FrameSizeError "RFC 9113 4.2" "A frame is larger than allowed."
    FrameSize FrameSizeError "RFC 9113 4.2" "A frame has a size that its type doesn't have."
    StreamRequired ProtocolError "RFC 9113 5.1.1" "A frame that belongs to a stream has none."
    StreamForbidden ProtocolError "RFC 9113 5.1.1" "A frame of the connection names a stream."
    IdleStream ProtocolError "RFC 9113 5.1" "A frame names a stream that hasn't begun."
    StreamIdentifier ProtocolError "RFC 9113 5.1.1" "A stream's number is even, or lower than an earlier one."
    ClosedStream StreamClosed "RFC 9113 5.1" "A header block follows the end of its stream."
    Padding ProtocolError "RFC 9113 6.1" "A frame's padding is as long as its payload."
    PushPromise ProtocolError "RFC 9113 8.4" "A client has pushed."
    Interleaved ProtocolError "RFC 9113 6.10" "Another frame interrupts a header block."
    Continuation ProtocolError "RFC 9113 6.10" "A CONTINUATION continues nothing."
    SettingValue ProtocolError "RFC 9113 6.5.2" "A setting has a forbidden value."
    SettingWindow FlowControlError "RFC 9113 6.5.2" "The initial window is larger than 2^31 - 1."
    WindowIncrement ProtocolError "RFC 9113 6.9" "The connection's window is increased by 0."
    WindowOverflow FlowControlError "RFC 9113 6.9.1" "A window is larger than 2^31 - 1."
    WindowExceeded FlowControlError "RFC 9113 6.9.1" "More content was sent than the connection's window allows."
    SelfDependency ProtocolError "RFC 7540 5.3.1" "A stream's priority depends on the stream itself."
    PriorityUpdate ProtocolError "RFC 9218 7.1" "A PRIORITY_UPDATE names no request."
    Compression CompressionError "RFC 7541" "A header block can't be decoded."
    BlockTooLarge EnhanceYourCalm "limit" "A header block is larger than the limit."
    TooManyContinuations EnhanceYourCalm "limit" "A header block has more CONTINUATION frames than the limit."
    ListTooLarge EnhanceYourCalm "limit" "A header block decodes to more than the limit."
    Aborted InternalError "RFC 9113 7" "The server has ended the connection."
    TooManyResets EnhanceYourCalm "limit" "More streams were reset than the limit."
    TooManyControlFrames EnhanceYourCalm "limit" "More frames without content were sent than the limit."
    TooManyAcknowledgements EnhanceYourCalm "limit" "More acknowledgements wait to be sent than the limit."
}

impl std::error::Error for ConnectionError {}
