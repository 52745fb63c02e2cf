//! HTTP/2 on the wire: the response in the form of HTTP/1, its fields compressed, its content in frames. So each rule about
//! fields and content exists once.

use std::mem;

use shearwater_http1::{ResponseContent, Version};
use shearwater_http2::ResponseHead;
use shearwater_io::Output;

use crate::http2::Multiplexed;
use crate::http2::outgoing::{End, append_range};
use crate::limits::{COPIED_BYTES_MAX, MULTIPLEXED_OUTPUT_BYTES_MAX, SPARE_BUFFER_BYTES_MAX};
use crate::response::draft::ResponseDraft;
use crate::response::facts::Disposition;
use crate::response::head::Preamble;
use crate::response::prebuilt::Prebuilt;
use crate::wire::http1::{self, Encoded, Form};

/// Encodes the response of the current stream, in the form of HTTP/1 into `scratch` first: its head, and its content if that is small and fits the windows. Other
/// content stays with the stream.
pub(crate) fn response(
    many: &mut Multiplexed,
    (out, scratch): (&mut Output, &mut Output),
    preamble: &Preamble,
    draft: &mut ResponseDraft,
    content: ResponseContent,
) -> Encoded {
    let (id, status) = (many.current, draft.status);
    let is_streamed = content.is_whole() && draft.framing().is_some();
    let mut whole = mem::take(scratch);
    let prebuilt = draft.take_prebuilt_alone(content);
    let block = prebuilt.as_deref().map_or(&[][..], Prebuilt::block);
    let encoded = match &prebuilt {
        Some(prebuilt) => http1::preamble_and_body(&mut whole, preamble, status, prebuilt, content),
        None => {
            let form = Form { version: Version::Http2, content, disposition: Disposition::Keep };
            http1::response(&mut whole, preamble, draft, form)
        }
    };
    let head = &whole.bytes()[..encoded.head_bytes];
    let status_line_len = head.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let (repeated, lines) = preamble.split_fields(&head[status_line_len..]);
    let len = whole.len() - encoded.head_bytes as u64;
    let before = out.len();
    let response = ResponseHead { status, repeated, lines, encoded: block, ..ResponseHead::default() };
    let ends = len == 0 && !is_streamed && !many.opens_tunnel;
    let is_open = many.connection.respond(id, &response, ends, out.bytes_mut());
    many.opens_tunnel &= is_open;
    let mut head_bytes = (out.len() - before) as usize;
    // That of a stream that was closed meanwhile is dropped.
    many.is_whole = !is_open || !is_streamed && is_sent_at_once(many, out, len);
    if is_open && many.is_whole {
        send_content(many, out, &whole, encoded.head_bytes as u64);
        // The header of its frame is no content.
        head_bytes = (out.len() - before - len) as usize;
    } else if is_open && is_streamed {
        many.keep_content(Output::new(), 0, None);
    } else if is_open {
        let end = End::Complete { trailers: Vec::new() };
        many.keep_content(mem::take(&mut whole), encoded.head_bytes as u64, Some(end));
    }
    whole.clear(SPARE_BUFFER_BYTES_MAX);
    *scratch = whole;
    Encoded { head_bytes, sent: encoded.sent }
}

/// Appends the content from `offset` on as the last frame of the current stream.
fn send_content(many: &mut Multiplexed, out: &mut Output, whole: &Output, offset: u64) {
    let len = whole.len() - offset;
    if len == 0 {
        return;
    }
    many.connection.data_header(many.current, len as usize, true, out.bytes_mut());
    append_range(out, whole, offset, len as usize);
    many.connection.ended(many.current, out.bytes_mut());
    many.content_sent += len;
}

/// Returns true if content may follow its head at once: it is less than a frame, and delays no other.
fn is_sent_at_once(many: &Multiplexed, out: &Output, len: u64) -> bool {
    len == 0
        || len < COPIED_BYTES_MAX as u64 / 2
            && out.len() < MULTIPLEXED_OUTPUT_BYTES_MAX as u64
            && len <= many.connection.sendable(many.current) as u64
}

/// Encodes `100 Continue` (RFC 9110 section 10.1.1).
pub(crate) fn interim(many: &mut Multiplexed, out: &mut Output) {
    let head = ResponseHead { status: 100, ..ResponseHead::default() };
    many.connection.respond(many.current, &head, false, out.bytes_mut());
}
