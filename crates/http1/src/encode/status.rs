//! Status lines with the reason phrases of the IANA HTTP Status Code Registry (RFC 9110 16.2.1).

macro_rules! registered {
    ($($status:literal $phrase:literal)*) => {
        /// Returns the registered phrase; empty for a status that has none.
        pub fn reason(status: u16) -> &'static str {
            match status {
                $($status => $phrase,)*
                _ => "",
            }
        }

        /// Returns the complete status line; empty for a status without a phrase.
        fn registered_line(status: u16) -> &'static str {
            match status {
                $($status => concat!("HTTP/1.1 ", $status, " ", $phrase, "\r\n"),)*
                _ => "",
            }
        }
    };
}

registered! {
    100 "Continue"
    101 "Switching Protocols"
    102 "Processing"
    103 "Early Hints"
    200 "OK"
    201 "Created"
    202 "Accepted"
    203 "Non-Authoritative Information"
    204 "No Content"
    205 "Reset Content"
    206 "Partial Content"
    207 "Multi-Status"
    208 "Already Reported"
    226 "IM Used"
    300 "Multiple Choices"
    301 "Moved Permanently"
    302 "Found"
    303 "See Other"
    304 "Not Modified"
    305 "Use Proxy"
    307 "Temporary Redirect"
    308 "Permanent Redirect"
    400 "Bad Request"
    401 "Unauthorized"
    402 "Payment Required"
    403 "Forbidden"
    404 "Not Found"
    405 "Method Not Allowed"
    406 "Not Acceptable"
    407 "Proxy Authentication Required"
    408 "Request Timeout"
    409 "Conflict"
    410 "Gone"
    411 "Length Required"
    412 "Precondition Failed"
    413 "Content Too Large"
    414 "URI Too Long"
    415 "Unsupported Media Type"
    416 "Range Not Satisfiable"
    417 "Expectation Failed"
    421 "Misdirected Request"
    422 "Unprocessable Content"
    423 "Locked"
    424 "Failed Dependency"
    425 "Too Early"
    426 "Upgrade Required"
    428 "Precondition Required"
    429 "Too Many Requests"
    431 "Request Header Fields Too Large"
    451 "Unavailable For Legal Reasons"
    500 "Internal Server Error"
    501 "Not Implemented"
    502 "Bad Gateway"
    503 "Service Unavailable"
    504 "Gateway Timeout"
    505 "HTTP Version Not Supported"
    506 "Variant Also Negotiates"
    507 "Insufficient Storage"
    508 "Loop Detected"
    511 "Network Authentication Required"
}

/// Replacement for an invalid status.
const STATUS_FALLBACK: u16 = 500;

/// Appends a status line. A status outside 100 to 599 is no HTTP status (RFC 9110 15) and is sent as 500; one without a
/// registered meaning is sent without a reason phrase.
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    let line = registered_line(status);
    match line.is_empty() {
        true => unregistered_line(out, status),
        false => out.extend_from_slice(line.as_bytes()),
    }
}

#[cold]
fn unregistered_line(out: &mut Vec<u8>, status: u16) {
    if !matches!(status, 100..=599) {
        return status_line(out, STATUS_FALLBACK);
    }
    let digit = |power: u16| b'0' + (status / power % 10) as u8;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
    out.extend_from_slice(b" \r\n");
}
