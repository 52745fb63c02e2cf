//! One version of a file: what tells it from others, and the answers that it gives.

use std::rc::Rc;

use shearwater::{FieldLines, Item, Prebuilt, Request, Response};
use shearwater_io::fs::Meta;

use crate::conditional::{self, Outcome};
use crate::media_type::media_type;
use crate::validators::Validators;

/// A version, with what is said of it in every answer.
pub(crate) struct Version {
    validators: Validators,
    /// `ETag` and `Last-Modified`, for answers without the content.
    about: FieldLines,
}

impl Version {
    /// The version that `meta` speaks of, and the answer with its content.
    pub(crate) fn new(meta: &Meta, name: &[u8], unix_seconds: u64, content: Item) -> (Self, Prebuilt) {
        let validators = Validators::of(meta, unix_seconds);
        let about = lines(&validators).expect("digits and dates can be sent");
        let answer = Prebuilt::new(media_type(name), &about, content).expect("a media type can be sent");
        (Self { validators, about }, answer)
    }

    /// Sends the content, or what the request's conditions come to.
    pub(crate) fn reply(&self, content: &Rc<Prebuilt>, request: &Request<'_>, response: &mut Response<'_>) {
        match conditional::evaluate(&request.head(), &self.validators) {
            Outcome::Send => response.prebuilt(content),
            Outcome::NotModified => response.status(304).lines(&self.about),
            Outcome::Failed => response
                .status(412)
                .text("The file is another version than the one asked for.\n")
                .lines(&self.about),
        };
    }
}

fn lines(validators: &Validators) -> Result<FieldLines, String> {
    let mut about = FieldLines::new();
    about.push("ETag", validators.etag())?.push("Last-Modified", validators.last_modified())?;
    Ok(about)
}
