//! HTTP/1 on the wire: responses, `100 Continue`, and pieces of streams. `http2.rs` translates what this writes.

use std::rc::Rc;

use shearwater_http1::{ResponseContent, ResponseFraming, Version, encode};
use shearwater_io::{Item, Output};

use crate::limits::COPIED_BYTES_MAX;
use crate::response::draft::{Body, ResponseDraft};
use crate::response::facts::Disposition;
use crate::response::fields::have_name;
use crate::response::head::Preamble;
use crate::response::header_rules::{HeaderRules, Layer, Names};
use crate::response::prebuilt::{Others, Prebuilt};

/// Facts beside the draft that decide the form of a response.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) version: Version,
    pub(crate) content: ResponseContent,
    pub(crate) disposition: Disposition,
}

/// A response that was encoded.
pub(crate) struct Encoded {
    pub(crate) head_bytes: usize,
    /// The prebuilt response that it consists of or belongs to.
    pub(crate) sent: Option<Rc<Prebuilt>>,
}

/// Encodes a response, or its head if its body is streamed; the common case without header rules is compiled separately.
#[inline(always)]
pub(crate) fn response(
    out: &mut Output,
    preamble: &Preamble,
    draft: &mut ResponseDraft,
    form: Form,
) -> Encoded {
    match draft.header_rules.take() {
        None => response_under(None, out, preamble, draft, form),
        Some(header_rules) => response_with_rules(&header_rules, out, preamble, draft, form),
    }
}

#[inline(never)]
fn response_with_rules(
    header_rules: &HeaderRules,
    out: &mut Output,
    preamble: &Preamble,
    draft: &mut ResponseDraft,
    form: Form,
) -> Encoded {
    response_under(Some(header_rules), out, preamble, draft, form)
}

/// Encodes head and body in the form that all responses share.
#[inline(always)]
fn response_under(
    header_rules: Option<&HeaderRules>,
    out: &mut Output,
    preamble: &Preamble,
    draft: &mut ResponseDraft,
    form: Form,
) -> Encoded {
    let Form { version, content, disposition } = form;
    let bytes = out.bytes_mut();
    let before = bytes.len();
    preamble.append(bytes, draft.status, header_rules.and_then(HeaderRules::server));
    match (disposition, version) {
        (Disposition::Keep, Version::Http11 | Version::Http2) => {}
        (Disposition::Keep, Version::Http10) => encode::connection_keep_alive(bytes),
        (Disposition::Truncated | Disposition::Last, _) => encode::connection_close(bytes),
        (Disposition::HandOver, _) => encode::connection_upgrade(bytes),
    }
    let layer = header_rules.map(|header_rules| header_rules.layer(draft.status));
    let without = layer.map_or(Names::NONE, Layer::without);
    if let Some(layer) = layer {
        let prebuilt = draft.prebuilt.as_deref();
        layer.append(bytes, |name| {
            have_name(&draft.fields, name) || prebuilt.is_some_and(|prebuilt| prebuilt.has(name))
        });
    }
    if let Some(prebuilt) = draft.prebuilt.take() {
        let others = Others { content_type: draft.content_type.line(), fields: &draft.fields, without };
        prebuilt.append_fields(bytes, others, content);
        let head_bytes = bytes.len() - before;
        if content.is_whole() {
            push(out, prebuilt.body());
        }
        return Encoded { head_bytes, sent: Some(prebuilt) };
    }
    bytes.extend_from_slice(draft.content_type.line());
    if !draft.fields.is_empty() {
        without.append_others(bytes, &draft.fields);
    }
    if let Some(body) = draft.body.take() {
        return rest(out, body, content, before);
    }
    ResponseFraming::Length(draft.bytes.len() as u64).append_end_of_head(bytes, content);
    let head_bytes = bytes.len() - before;
    if content.is_whole() {
        bytes.extend_from_slice(&draft.bytes);
    }
    Encoded { head_bytes, sent: None }
}

/// Encodes the beginning of a head, whose fields are encoded elsewhere, and the body of a prebuilt response.
pub(crate) fn preamble_and_body(
    out: &mut Output,
    preamble: &Preamble,
    status: u16,
    prebuilt: &Rc<Prebuilt>,
    content: ResponseContent,
) -> Encoded {
    preamble.append(out.bytes_mut(), status, None);
    let head_bytes = out.bytes().len();
    if content.is_whole() {
        push(out, prebuilt.body());
    }
    Encoded { head_bytes, sent: Some(Rc::clone(prebuilt)) }
}

/// Encodes the end of a head that began after `before` bytes, and a body other than bytes, unless that is streamed.
#[inline(never)]
fn rest(out: &mut Output, body: Body, content: ResponseContent, before: usize) -> Encoded {
    body.framing().append_end_of_head(out.bytes_mut(), content);
    let head_bytes = out.bytes().len() - before;
    let sent = match body {
        Body::Pieces(pieces) if content.is_whole() => pieces.append_to(out),
        Body::Item(item) if content.is_whole() => {
            push(out, &item);
            None
        }
        Body::Item(_) | Body::Pieces(_) | Body::Stream(_) | Body::Coded(..) => None,
    };
    Encoded { head_bytes, sent }
}

/// Appends a body. Copying a small one costs less than another vector for the kernel to gather.
fn push(out: &mut Output, body: &Item) {
    match body {
        Item::Shared(block) if block.len() <= COPIED_BYTES_MAX => out.bytes_mut().extend_from_slice(block),
        item => out.push(item.clone()),
    }
}

/// Encodes `100 Continue` (RFC 9110 section 10.1.1).
pub(crate) fn interim(out: &mut Vec<u8>) {
    encode::continue_100(out);
}

/// Encodes a piece of a stream.
pub(crate) fn piece(out: &mut Vec<u8>, framing: ResponseFraming, bytes: &[u8]) {
    framing.append_piece(out, bytes);
}

/// Encodes the end of a stream.
pub(crate) fn end(out: &mut Vec<u8>, framing: ResponseFraming, trailers: &[u8]) {
    framing.append_end(out, trailers);
}
