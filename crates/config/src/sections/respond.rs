//! `respond`: an answer that needs no file.

use crate::checks::{any, media_type};
use crate::fields::{Fields, Visit};
use crate::rules::{Integer, Text};

/// An answer that needs no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respond {
    /// 200 to 599.
    pub status: u16,
    /// The media type.
    pub media_type: String,
    /// The content.
    pub body: String,
}

impl Default for Respond {
    fn default() -> Self {
        Self { status: 200, media_type: "text/plain; charset=utf-8".to_owned(), body: String::new() }
    }
}

impl Fields for Respond {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field("status", "The answer's status.", Integer(200..=599), &mut self.status);
        visit.field(
            "type",
            "The content's media type.",
            Text("a media type, such as \"text/plain; charset=utf-8\"", media_type),
            &mut self.media_type,
        );
        visit.field("body", "The content.", Text("a text", any), &mut self.body);
    }

    fn example() -> Self {
        Self { body: "ok\n".to_owned(), ..Self::default() }
    }
}
