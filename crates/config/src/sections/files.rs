//! Keys of `[[site]]` and `[[site.route]]` about files.

use std::collections::BTreeMap;
use std::path::{PathBuf, absolute};

use shearwater_http1::media_type::{is_media_range, is_media_type, is_token};

use crate::context::Context;
use crate::rules::collections::{List, Map, Optional, Table};
use crate::rules::strings::{Choice, Flag, OrFalse, Text, choices, text};
use crate::section::{Kind::Inline, Source, section};

section! {
    /// Settings for the files of a site or route. A route inherits the keys of its site.
    Serving {
        root: Option<PathBuf> = None, Optional(FOLDER),
            "The folder to serve, relative to that of this file. The whole path of a request is looked up beneath it.";
        index: Vec<String> = vec!["index.html".to_owned()], List(text("a file name, such as \"index.html\"")),
            "Index files of folders; the first that exists is sent.";
        try_files: Vec<String> = Vec::new(), List(text("a path, a path with {path}, or \"=404\" at the end")),
            "Files to try in order: `[\"{path}\", \"{path}.html\", \"{path}/index.html\", \"/index.html\"]`. `\"=404\"` as the last entry responds \
             with that status. Empty: the path itself. A percent sign is written %25, here and in `spa` and `error_pages`.";
        spa: Option<String> = None, OrFalse(text("a path of the site, such as \"/index.html\"")),
            "For single-page applications: the file sent with status 200 when a browser navigates to a path that doesn't exist (GET or HEAD; \
             the last segment has no dot, or text/html is accepted). Can't be combined with `try_files`.";
        clean_urls: bool = false, Flag,
            "Serves about.html at /about, and redirects /about.html to /about.";
        hidden: Hidden = Hidden::Deny, Choice(&[]),
            "Names that start with a dot: \"deny\" treats them as missing, \"serve\" as any other. /.well-known/ is always served.";
        symlinks: Symlinks = Symlinks::Inside, Choice(&[("beneath", "inside"), ("deny", "never")]),
            "Symbolic links: \"inside\" follows those whose target is beneath the root and responds 403 to others; \"never\" follows none (404); \
             \"follow\" follows all. Use \"follow\" only if everyone who can write to the folder may publish any file that the server can read.";
        listing: bool = false, Flag,
            "Lists folders without an index, as HTML or JSON depending on Accept.";
        precompressed: Vec<Coding> = vec![Coding::Br, Coding::Zstd, Coding::Gzip], List(Choice(&[])),
            "Precompressed files to look for (NAME.br, NAME.zst, NAME.gz), in order of preference. Empty: none. `shearwater precompress` makes \
             them.";
        compress: bool = false, Flag,
            "Compresses text and similar types of 1 KiB to 8 MiB on the fly, by brotli, zstd or gzip as the client prefers. The first request \
             for a file gets it as it is, later ones the result. Precompressed files come first.";
        mime: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table by extension, such as { foo = \"text/x-foo\" }", extension, MEDIA_TYPE),
            "Media types by extension, in addition to the built-in ones, sent as written. A route adds to those of its site.";
        mime_names: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table by file name, such as { LICENSE = \"text/plain\" }", |name| Some(name.to_owned()), MEDIA_TYPE),
            "Media types by whole file name, in any folder, before those by extension. A route adds to those of its site.";
        charset: String = "utf-8".to_owned(), CHARSET,
            "Charset of built-in media types of text. Without one, browsers read it from the file (`<meta charset>`). Types in `mime` and \
             `mime_names` are sent as written.";
        error_pages: BTreeMap<u16, String> = BTreeMap::new(),
            Map("a table by status, such as { 404 = \"/404.html\" }", |status| status.parse().ok(), text("a path of the site, such as \"/404.html\"")),
            "Error pages by status; the status of the response stays. A route adds to those of its site.";
        cache_control: Vec<CacheControl> = Vec::new(), List(Table(Inline, "a table such as { type = \"text/html\", value = \"no-cache\" }")),
            "Cache-Control by media type or path; the first match wins. Without a match, the header is not sent.";
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        if source.has("spa") && self.spa.is_some() && source.has("try_files") && !self.try_files.is_empty() {
            let help = "remove one of them: the last entry of `try_files` is a fallback as well";
            source.error(context, "spa", "`spa` and `try_files` can't be combined", help);
        }
    }

    fn example() -> Self {
        Self {
            root: Some(PathBuf::from("public")),
            spa: Some("/index.html".to_owned()),
            mime: BTreeMap::from([("foo".to_owned(), "text/x-foo".to_owned())]),
            mime_names: BTreeMap::from([("LICENSE".to_owned(), "text/plain".to_owned())]),
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

choices! {
    /// Treatment of names that start with a dot.
    Hidden {
        Deny "deny": "Missing, except `/.well-known/`";
        Serve "serve": "As any other name";
    }
}

choices! {
    /// Symbolic links to follow.
    Symlinks {
        Inside "inside": "Links whose target is beneath the root, including absolute links";
        Never "never": "None: a path with a link is not found";
        Follow "follow": "All links";
    }
}

choices! {
    /// Content coding of a precompressed file.
    Coding {
        Br "br": "`NAME.br`";
        Zstd "zstd": "`NAME.zst`";
        Gzip "gzip": "`NAME.gz`";
    }
}

/// The first one, which is overwritten where a list is read.
impl Default for Coding {
    fn default() -> Self {
        Self::Br
    }
}

/// A folder, absolute or relative to that of the configuration file.
const FOLDER: Text<PathBuf> = Text {
    allowed: "a folder, such as \"./public\"",
    parse: |text, base| {
        if text.is_empty() || text.contains('\0') {
            return Err("invalid path of a folder".to_owned());
        }
        let joined = base.join(text);
        Ok(absolute(&joined).unwrap_or(joined))
    },
    format: |path| path.to_string_lossy().into_owned(),
    help: "the folder of the configuration file is \".\"",
};

/// A media type with parameters (RFC 9110 section 8.3.1).
pub(crate) const MEDIA_TYPE: Text<String> = Text {
    parse: |text, _| checked(text, is_media_type(text), "media type"),
    ..text("a media type, such as \"text/plain; charset=utf-8\"")
};

const CHARSET: Text<String> = Text {
    parse: |text, _| checked(text, text.is_empty() || is_token(text), "charset"),
    ..text("a charset, such as \"utf-8\", or \"\" for none")
};

/// A media type without parameters, or a range of them, `image/*`.
const MEDIA_RANGE: Text<String> = Text {
    parse: |text, _| checked(text, is_media_range(text), "media type"),
    ..text("a media type without parameters, such as \"text/html\" or \"image/*\"")
};

fn checked(text: &str, is_valid: bool, what: &str) -> Result<String, String> {
    if is_valid { Ok(text.to_owned()) } else { Err(format!("invalid {what}")) }
}

section! {
    /// A rule for `Cache-Control`, with either a type or a path; the first that matches applies.
    CacheControl {
        media_type as "type": Option<String> = None, Optional(MEDIA_RANGE),
            "Media type to match, without parameters: `text/html` or `image/*`.";
        path: Option<String> = None, Optional(text("a path, such as \"/sw.js\", \"/assets/*\" or \"*.map\"")),
            "Path of the file that is sent (for / it may be /index.html). A `*` matches anything. A percent sign is written %25, a star in a \
             name %2A.";
        value: String = String::new(), text("a string, such as \"public, max-age=3600\""),
            "Value of Cache-Control.";
    }

    const MEANS: &'static str = "A rule for Cache-Control.";
    const REQUIRED: &'static [&'static str] = &["value"];

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        match (source.has("type"), source.has("path")) {
            (true, true) => source.error(context, "path", "both `type` and `path` are set", "remove one of them"),
            (false, false) => {
                let help = "add `type` or `path`; `path = \"/*\"` matches every file";
                context.error_with_help(&source.span, "missing key `type` or `path`", help);
            }
            _ => {}
        }
    }

    fn example() -> Self {
        Self { media_type: Some("text/html".to_owned()), path: None, value: "no-cache".to_owned() }
    }
}
