//! `[[site.redirect]]`: from one path, or all beneath it, to another place.

use crate::checks::{REST, redirect_target};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{OneOf, PathPattern, Text};
use crate::sections::route::Pattern;

/// From one path, or all beneath it, to another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The paths.
    pub from: Pattern,
    /// The place: a path of this site or a whole URL. `{rest}` is what the `*` of `from` stands for.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

impl Default for Redirect {
    fn default() -> Self {
        Self { from: Pattern::default(), to: String::new(), status: 308 }
    }
}

impl Fields for Redirect {
    const REQUIRED: &'static [&'static str] = &["from", "to"];

    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field("from", "The path, or one with all beneath it (/old/*).", PathPattern, &mut self.from);
        visit.field(
            "to",
            "Where to: a path of this site, or a whole URL. {rest} is what the * of `from` stands for. \
             The request's query is kept unless there is one here.",
            Text(
                "a path or URL, such as \"/new\", \"/new/{rest}\" or \"https://example.org/\"",
                redirect_target,
            ),
            &mut self.to,
        );
        visit.field(
            "status",
            "301 and 302 may become GET, 303 does, 307 and 308 keep the method; 301 and 308 are for ever.",
            OneOf(&[301, 302, 303, 307, 308]),
            &mut self.status,
        );
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        if table.has("from") && self.to.contains(REST) && !self.from.is_prefix() {
            let what = format!("{REST} is what a * stands for, and `from` has none");
            reading.within("to", |reading| reading.problem(&table.span_of("to"), what));
        }
    }

    fn example() -> Self {
        Self { from: Pattern::Prefix("/old/".to_owned()), to: format!("/new/{REST}"), status: 308 }
    }
}
