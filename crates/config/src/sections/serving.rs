//! How the files of a site, or of one of its routes, are served.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::checks::{encoded_path, error_status, extension, file_path, index_name, media_type, try_file};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Choice, Choices, Flag, Folder, Inline, List, Map, Optional, OrOff, Text};
use crate::sections::cache_control::CacheControl;

/// How the files of a site, or of one of its routes, are served. A route has that of its site where it says nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// The folder, absolute; `None`: no files.
    pub root: Option<PathBuf>,
    /// Names that answer for a folder, the first that is there.
    pub index: Vec<String>,
    /// What is looked for, in this order; empty: the path as it is.
    pub try_files: Vec<String>,
    /// What navigation to a path that isn't there gets, with `200`.
    pub spa: Option<String>,
    /// Whether `/about` is answered with `about.html`, and `/about.html` leads to `/about`.
    pub clean_urls: bool,
    /// Names that begin with a dot.
    pub hidden: Hidden,
    /// Symbolic links.
    pub symlinks: Symlinks,
    /// Whether a folder without an index is listed.
    pub listing: bool,
    /// Codings that are looked for beside a file, the one to be preferred first.
    pub precompressed: Vec<Coding>,
    /// Media types by extension, before the known ones.
    pub mime: BTreeMap<String, String>,
    /// Pages of the site by the status of the error that they are shown with.
    pub error_pages: BTreeMap<u16, String>,
    /// How long answers may be kept by others; the first that applies counts.
    pub cache_control: Vec<CacheControl>,
}

/// What becomes of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// They are not there, but for `/.well-known/`.
    Deny,
    /// They are as any other.
    Serve,
}

/// The symbolic links that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Links whose target is beneath the root, absolute links too.
    Inside,
    /// None: a path with a link is not found.
    Never,
    /// All links, wherever they lead.
    Follow,
}

/// A coding that lies ready beside a file.
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

impl Default for Serving {
    fn default() -> Self {
        Self {
            root: None,
            index: vec!["index.html".to_owned()],
            try_files: Vec::new(),
            spa: None,
            clean_urls: false,
            hidden: Hidden::Deny,
            symlinks: Symlinks::Inside,
            listing: false,
            precompressed: vec![Coding::Br, Coding::Zstd, Coding::Gzip],
            mime: BTreeMap::new(),
            error_pages: BTreeMap::new(),
            cache_control: Vec::new(),
        }
    }
}

impl Fields for Serving {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "root",
            "The folder, relative to that of this file. The whole path of a request is looked for beneath it.",
            Optional(Folder),
            &mut self.root,
        );
        self.lookup_fields(visit);
        self.policy_fields(visit);
        self.reply_fields(visit);
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        if table.has("spa") && self.spa.is_some() && table.has("try_files") && !self.try_files.is_empty() {
            let what = "`spa` and `try_files` both say what becomes of a path that isn't there: \
                        keep one; try_files = [\"{path}\", \"/index.html\"] has its last as a fallback";
            reading.within("spa", |reading| reading.problem(&table.span_of("spa"), what));
        }
        let is_status = |tried: &String| tried.starts_with('=');
        if self.try_files.iter().rev().skip(1).any(is_status) {
            let what = "a status ends the search: it stands at the end of the list";
            reading.within("try_files", |reading| reading.problem(&table.span_of("try_files"), what));
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

impl Serving {
    /// Which file answers for a path.
    fn lookup_fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "index",
            "Names that answer for a folder, the first that is there.",
            List(Text("a name of a file, such as \"index.html\"", index_name)),
            &mut self.index,
        );
        visit.field(
            "try_files",
            "What is looked for, the first that is there: [\"{path}\", \"{path}.html\", \"{path}/index.html\", \"/index.html\"]; \
             \"=404\" at the end is that status. Empty: the path as it is. As in a URL, a percent sign is %25, here and in spa and error_pages.",
            List(Text("a path with {path} in it, a path, or \"=404\" at the end", try_file)),
            &mut self.try_files,
        );
        visit.field(
            "spa",
            "For programs of one page: what a path that isn't there is answered with, with status 200, where a browser goes to it \
             (GET or HEAD; its last part has no dot, or text/html is accepted). Not beside try_files.",
            OrOff(Text("a path of the site, such as \"/index.html\"", file_path)),
            &mut self.spa,
        );
        visit.field(
            "clean_urls",
            "Whether /about is answered with about.html, and /about.html leads to /about.",
            Flag,
            &mut self.clean_urls,
        );
    }

    /// Which files there are.
    fn policy_fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "hidden",
            "Names that begin with a dot: not there, or as any other. /.well-known/ is always there.",
            Choice,
            &mut self.hidden,
        );
        visit.field(
            "symlinks",
            "Symbolic links: \"inside\" follows those whose target is beneath the root, absolute links too, and rejects others with 403; \"never\" \
             follows none (404); \"follow\" follows all. Use \"follow\" only if everyone who can write to the tree may publish any file \
             that the server can read.",
            Choice,
            &mut self.symlinks,
        );
        visit.field(
            "listing",
            "Whether a folder without an index is listed, as HTML or JSON by what the client accepts.",
            Flag,
            &mut self.listing,
        );
        visit.field(
            "precompressed",
            "Codings that are looked for beside a file (NAME.br, NAME.zst, NAME.gz), the one to be preferred first. Empty: none. \
             `shearwater precompress` makes them.",
            List(Choice),
            &mut self.precompressed,
        );
    }

    /// What answers say.
    fn reply_fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "mime",
            "Media types by extension, before the known ones. A route adds to its site's.",
            Map(
                "a table by extension, such as { foo = \"text/x-foo\" }",
                extension,
                Text("a media type, such as \"text/x-foo\"", media_type),
            ),
            &mut self.mime,
        );
        visit.field(
            "error_pages",
            "Pages of the site by the status of the error that they are shown with; the status stays. A route adds to its site's.",
            Map(
                "a table by status, such as { 404 = \"/404.html\" }",
                error_status,
                Text("a path of the site, such as \"/404.html\"", encoded_path),
            ),
            &mut self.error_pages,
        );
        visit.field(
            "cache_control",
            "What Cache-Control says, by media type or path; the first that applies counts. Without any: no such field.",
            List(Inline("a table such as { type = \"text/html\", value = \"no-cache\" }")),
            &mut self.cache_control,
        );
    }
}
