//! Keys of `[[site]]` and `[[site.route]]` about files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::context::Context;
use crate::rules::{Choice, Choices, Flag, Folder, Inline, List, Map, MediaType, Optional, OrFalse, Text};
use crate::section::{Table, section};

section! {
    /// Settings for the files of a site or route. A route inherits the keys of its site.
    Serving {
        root: Option<PathBuf> = None, Optional(Folder),
            "The folder to serve, relative to that of this file. The whole path of a request is looked up beneath it.";
        index: Vec<String> = vec!["index.html".to_owned()], List(Text("a file name, such as \"index.html\"")),
            "Index files of folders; the first that exists is sent.";
        try_files: Vec<String> = Vec::new(), List(Text("a path, a path with {path}, or \"=404\" at the end")),
            "Files to try in order: `[\"{path}\", \"{path}.html\", \"{path}/index.html\", \"/index.html\"]`. `\"=404\"` as the last entry responds \
             with that status. Empty: the path itself. A percent sign is written %25, here and in `spa` and `error_pages`.";
        spa: Option<String> = None, OrFalse(Text("a path of the site, such as \"/index.html\"")),
            "For single-page applications: the file sent with status 200 when a browser navigates to a path that doesn't exist (GET or HEAD; \
             the last segment has no dot, or text/html is accepted). Can't be combined with `try_files`.";
        clean_urls: bool = false, Flag,
            "Serves about.html at /about, and redirects /about.html to /about.";
        hidden: Hidden = Hidden::Deny, Choice,
            "Names that start with a dot: \"deny\" treats them as missing, \"serve\" as any other. /.well-known/ is always served.";
        symlinks: Symlinks = Symlinks::Inside, Choice,
            "Symbolic links: \"inside\" follows those whose target is beneath the root and responds 403 to others; \"never\" follows none (404); \
             \"follow\" follows all. Use \"follow\" only if everyone who can write to the folder may publish any file that the server can read.";
        listing: bool = false, Flag,
            "Lists folders without an index, as HTML or JSON depending on Accept.";
        precompressed: Vec<Coding> = vec![Coding::Br, Coding::Zstd, Coding::Gzip], List(Choice),
            "Precompressed files to look for (NAME.br, NAME.zst, NAME.gz), in order of preference. Empty: none. `shearwater precompress` makes \
             them.";
        mime: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table by extension, such as { foo = \"text/x-foo\" }", extension, MediaType::WithParameters),
            "Media types by extension, in addition to the built-in ones. A route adds to those of its site.";
        error_pages: BTreeMap<u16, String> = BTreeMap::new(),
            Map("a table by status, such as { 404 = \"/404.html\" }", |status| status.parse().ok(), Text("a path of the site, such as \"/404.html\"")),
            "Error pages by status; the status of the response stays. A route adds to those of its site.";
        cache_control: Vec<CacheControl> = Vec::new(), List(Inline("a table such as { type = \"text/html\", value = \"no-cache\" }")),
            "Cache-Control by media type or path; the first match wins. Without a match, the header is not sent.";
    }

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        if table.has("spa") && self.spa.is_some() && table.has("try_files") && !self.try_files.is_empty() {
            let help = "remove one of both: the last entry of `try_files` is a fallback as well";
            table.error(context, "spa", "`spa` and `try_files` can't be combined", help);
        }
    }

    fn example() -> Self {
        Self {
            root: Some(PathBuf::from("public")),
            spa: Some("/index.html".to_owned()),
            mime: BTreeMap::from([("foo".to_owned(), "text/x-foo".to_owned())]),
            error_pages: BTreeMap::from([(404, "/404.html".to_owned())]),
            cache_control: vec![CacheControl::example()],
            ..Self::default()
        }
    }
}

/// Normalizes an extension, `.FOO` or `foo`.
#[expect(clippy::unnecessary_wraps, reason = "keys of other tables can be invalid")]
fn extension(text: &str) -> Option<String> {
    Some(text.strip_prefix('.').unwrap_or(text).to_ascii_lowercase())
}

/// Treatment of names that start with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Missing, except `/.well-known/`.
    Deny,
    /// As any other name.
    Serve,
}

/// Symbolic links to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Links whose target is beneath the root, including absolute links.
    Inside,
    /// None: a path with a link is not found.
    Never,
    /// All links.
    Follow,
}

/// Content coding of a precompressed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// `NAME.br`
    #[default]
    Br,
    /// `NAME.zst`
    Zstd,
    /// `NAME.gz`
    Gzip,
}

impl Choices for Hidden {
    const ALL: &'static [(&'static str, Self)] = &[("deny", Self::Deny), ("serve", Self::Serve)];
}

impl Choices for Symlinks {
    const ALL: &'static [(&'static str, Self)] =
        &[("inside", Self::Inside), ("never", Self::Never), ("follow", Self::Follow)];
    const RENAMED: &'static [(&'static str, &'static str)] = &[("beneath", "inside"), ("deny", "never")];
}

impl Choices for Coding {
    const ALL: &'static [(&'static str, Self)] =
        &[("br", Self::Br), ("zstd", Self::Zstd), ("gzip", Self::Gzip)];
}

section! {
    /// A rule for `Cache-Control`; the first that matches applies.
    CacheControl {
        media_type as "type": Option<String> = None, Optional(MediaType::Range),
            "Media type to match, without parameters: `text/html` or `image/*`.";
        path: Option<String> = None, Optional(Text("a path, such as \"/sw.js\", \"/assets/*\" or \"*.map\"")),
            "Path of the file that is sent (for / it may be /index.html). A `*` matches anything. A percent sign is written %25, a star in a \
             name %2A.";
        value: String = String::new(), Text("a string, such as \"public, max-age=3600\""),
            "Value of Cache-Control.";
    }

    const REQUIRED: &'static [&'static str] = &["value"];

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        match (table.has("type"), table.has("path")) {
            (true, true) => table.error(context, "path", "both `type` and `path` are set", "remove one of both"),
            (false, false) => {
                let help = "add `type` or `path`; `path = \"/*\"` matches every file";
                context.error_with_help(&table.span, "missing key `type` or `path`", help);
            }
            _ => {}
        }
    }

    fn example() -> Self {
        Self { media_type: Some("text/html".to_owned()), path: None, value: "no-cache".to_owned() }
    }
}

/// Files that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies<'a> {
    /// Files of a media type, such as `text/html` or `image/*`.
    MediaType(&'a str),
    /// Files by their path in the folder: `/sw.js`, `/assets/*`, `*.map`, `/a/*.css`.
    Path(&'a str),
}

impl CacheControl {
    /// Returns the files that the rule matches. It is `Some` in every configuration that was parsed.
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
