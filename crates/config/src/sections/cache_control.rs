//! `cache_control`: how long answers may be kept by others.

use std::fmt;

use crate::checks::{field_value, media_range};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Optional, PathPattern, Text};
use crate::sections::route::Pattern;

/// One rule on how long answers may be kept by others; the first that applies counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheControl {
    /// The media type that it applies to, such as `text/html` or `image/*`.
    pub media_type: Option<String>,
    /// The paths that it applies to.
    pub path: Option<Pattern>,
    /// The field's value.
    pub value: String,
}

/// What a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies<'a> {
    /// A media type, such as `text/html` or `image/*`.
    MediaType(&'a str),
    /// Paths.
    Path(&'a Pattern),
}

impl CacheControl {
    /// What it applies to: exactly one of both is there in a configuration that was read.
    #[must_use]
    pub fn applies(&self) -> Option<Applies<'_>> {
        let media_type = self.media_type.as_deref().map(Applies::MediaType);
        media_type.or_else(|| self.path.as_ref().map(Applies::Path))
    }
}

impl fmt::Display for Applies<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MediaType(media_type) => f.write_str(media_type),
            Self::Path(path) => path.fmt(f),
        }
    }
}

impl Fields for CacheControl {
    const REQUIRED: &'static [&'static str] = &["value"];

    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "type",
            "The media type that it applies to, without parameters; all of a kind: image/*.",
            Optional(Text("a media type, such as \"text/html\" or \"image/*\"", media_range)),
            &mut self.media_type,
        );
        visit.field("path", "The paths that it applies to.", Optional(PathPattern), &mut self.path);
        visit.field(
            "value",
            "What Cache-Control says.",
            Text("a text, such as \"public, max-age=3600\"", field_value),
            &mut self.value,
        );
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        match (table.has("type"), table.has("path")) {
            (true, true) => {
                let what = "either `type` or `path`, not both";
                reading.within("path", |reading| reading.problem(&table.span_of("path"), what));
            }
            (false, false) => {
                let what = "to what does it apply? Say `type` or `path`; path = \"/*\" is everything";
                reading.problem(&table.span, what);
            }
            _ => {}
        }
    }

    fn example() -> Self {
        Self { media_type: Some("text/html".to_owned()), path: None, value: "no-cache".to_owned() }
    }
}
