//! `respond`: an answer that needs no file.

use crate::checks::{any, media_type};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Integer, Text};

/// An answer that needs no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respond {
    /// 200 to 599, but for those that need more: 206, 3xx, 405 and 426.
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

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        let why = match self.status {
            300..=399 => "it needs a place to go: make it a [[site.redirect]]",
            206 | 405 | 426 => "it needs fields that such an answer hasn't",
            204 | 205 if !self.body.is_empty() => "an answer of this status has no body",
            _ => return,
        };
        reading.within("status", |reading| reading.problem(&table.span_of("status"), why));
    }

    fn example() -> Self {
        Self { body: "ok\n".to_owned(), ..Self::default() }
    }
}
