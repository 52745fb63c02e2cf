//! `cache_control`: how long answers may be kept by others.

use std::fmt;

use crate::checks::{cache_value, file_glob, media_range};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Optional, Text};

/// One rule on how long answers may be kept by others; the first that applies counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheControl {
    /// The media type that it applies to, such as `text/html` or `image/*`.
    pub media_type: Option<String>,
    /// The percent-encoded path of the files that it applies to: `/sw.js`, `/assets/*`, `*.map`, `/a/*.css`.
    pub path: Option<String>,
    /// The field's value.
    pub value: String,
}

/// What a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies<'a> {
    /// A media type, such as `text/html` or `image/*`.
    MediaType(&'a str),
    /// Files by their path in the folder: `/sw.js`, `/assets/*`, `*.map`, `/a/*.css`.
    Path(&'a str),
}

impl CacheControl {
    /// What it applies to: exactly one of both is there in a configuration that was read.
    #[must_use]
    pub fn applies(&self) -> Option<Applies<'_>> {
        let media_type = self.media_type.as_deref().map(Applies::MediaType);
        media_type.or_else(|| self.path.as_deref().map(Applies::Path))
    }
}

impl fmt::Display for Applies<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MediaType(text) | Self::Path(text) => f.write_str(text),
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
        visit.field(
            "path",
            "The files that it applies to, by the path of what is sent (of / that may be /index.html); a * stands for anything. \
             As in a URL, a percent sign is %25 and a star in a name %2A.",
            Optional(Text("a path, such as \"/sw.js\", \"/assets/*\" or \"*.map\"", file_glob)),
            &mut self.path,
        );
        visit.field(
            "value",
            "What Cache-Control says.",
            Text("a text, such as \"public, max-age=3600\"", cache_value),
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
