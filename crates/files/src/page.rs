//! A file as the page of an error: its content under another answer's status.

use std::rc::Rc;

use shearwater::{Item, Pieces, Prebuilt, Response};

/// Sends the content of a file with this status. What else is said of it (entity tag, date, ranges) is said of answers with `200`
/// alone: nobody may take the page for what was asked for.
pub(crate) fn reply(content: &Rc<Prebuilt>, media_type: &str, status: u16, response: &mut Response<'_>) {
    response.status(status).content_type(media_type);
    match content.body() {
        Item::Shared(block) => response.body_shared(block.clone()),
        Item::File(slice) => {
            let mut pieces = Pieces::new();
            pieces.of(content).stretch(content.body(), 0, slice.len);
            response.body_pieces(pieces)
        }
    };
}
