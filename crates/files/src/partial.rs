//! Partial responses: one range as it is, several as `multipart/byteranges` (RFC 9110 sections 14.6 and 15.3.7).
//!
//! Parts refer to the whole file's body, a block in memory or an open file: nothing is read or copied.

use std::rc::Rc;

use shearwater::{Item, Pieces, Prebuilt, Response};

use crate::boundary::boundary;
use crate::range::Span;

/// Responds with `206` and at least one span of the file whose whole response is `whole`. The caller adds further
/// headers.
pub(crate) fn reply(whole: &Rc<Prebuilt>, media_type: &str, spans: &[Span], response: &mut Response<'_>) {
    let content = whole.body();
    let mut pieces = Pieces::new();
    pieces.of(whole);
    response.status(206);
    if let [span] = spans {
        pieces.stretch(content, span.first, span.bytes());
        response.content_type(media_type).field("Content-Range", content_range(*span, content.len()));
    } else {
        let boundary = boundary();
        parts(&mut pieces, content, media_type, spans, &boundary);
        response.content_type(&format!("multipart/byteranges; boundary={boundary}"));
    }
    response.body_pieces(pieces);
}

/// Responds with `416` for a file of `len` bytes (RFC 9110 section 15.5.17).
pub(crate) fn unsatisfiable(len: u64, response: &mut Response<'_>) {
    response.status(416).field("Content-Range", format!("bytes */{len}"));
    response.text("The file has none of the bytes that were asked for.\n");
}

fn parts(pieces: &mut Pieces, content: &Item, media_type: &str, spans: &[Span], boundary: &str) {
    for span in spans {
        let range = content_range(*span, content.len());
        pieces.bytes(format!("--{boundary}\r\nContent-Type: {media_type}\r\nContent-Range: {range}\r\n\r\n"));
        pieces.stretch(content, span.first, span.bytes()).bytes("\r\n");
    }
    pieces.bytes(format!("--{boundary}--\r\n"));
}

fn content_range(span: Span, len: u64) -> String {
    format!("bytes {}-{}/{len}", span.first, span.last)
}
