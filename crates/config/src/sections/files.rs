//! Keys of `[[site]]` and `[[site.route]]` about files.

use std::collections::BTreeMap;
use std::path::{PathBuf, absolute};

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
        mime: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table by extension, such as { foo = \"text/x-foo\" }", extension, MEDIA_TYPE),
            "Media types by extension, in addition to the built-in ones, sent as written. A route adds to those of its site.";
        mime_names: BTreeMap<String, String> = BTreeMap::new(),
            Map("a table by file name, such as { LICENSE = \"text/plain\" }", |name| Some(name.to_owned()), MEDIA_TYPE),
            "Media types by whole file name, in any folder, before those by extension. A route adds to those of its site.";
        charset: String = "utf-8".to_owned(), text("a charset, such as \"utf-8\", or \"\" for none"),
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
    allowed: "a media type, such as \"text/plain; charset=utf-8\"",
    parse: |text, _| {
        let (essence, parameters) = text.split_at(text.find([';', ' ', '\t']).unwrap_or(text.len()));
        valid_media_type(text, is_media_type(essence, false) && are_parameters(parameters))
    },
    ..text("")
};

/// A media type without parameters, or a range of them, `image/*`.
const MEDIA_RANGE: Text<String> = Text {
    allowed: "a media type without parameters, such as \"text/html\" or \"image/*\"",
    parse: |text, _| valid_media_type(text, is_media_type(text, true)),
    ..text("")
};

fn valid_media_type(text: &str, is_valid: bool) -> Result<String, String> {
    if is_valid { Ok(text.to_owned()) } else { Err("invalid media type".to_owned()) }
}

/// Returns whether a text is `type/subtype`, or `type/*` if `is_range`.
fn is_media_type(text: &str, is_range: bool) -> bool {
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_token(kind) && kind != "*" && is_token(subtype) && (is_range || subtype != "*")
    })
}

/// Returns whether a text is `*( OWS ";" OWS name "=" value )`. Empty parameters, which recipients must ignore, aren't sent.
fn are_parameters(mut text: &str) -> bool {
    const OWS: [char; 2] = [' ', '\t'];
    while !text.is_empty() {
        let parameter =
            text.trim_start_matches(OWS).strip_prefix(';').map(|rest| rest.trim_start_matches(OWS));
        let Some((name, value)) = parameter.and_then(|parameter| parameter.split_once('=')) else {
            return false;
        };
        let len = value_len(value);
        if !is_token(name) || len == 0 {
            return false;
        }
        text = &value[len..];
    }
    true
}

/// Returns the length of the token or quoted string that a text begins with, or 0.
fn value_len(text: &str) -> usize {
    let Some(quoted) = text.strip_prefix('"') else {
        return text.bytes().position(|byte| !is_token_byte(byte)).unwrap_or(text.len());
    };
    let mut is_escaped = false;
    for (place, byte) in quoted.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return place + 2,
            b'\t' | b' '..=b'~' => is_escaped = byte == b'\\' && !is_escaped,
            _ => return 0,
        }
    }
    0
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MEDIA_TYPE, is_media_type};

    /// The crate of the files has the same cases.
    #[test]
    fn media_types_follow_the_grammar() {
        for line in include_str!("../../../files/tests/media_types.txt").lines() {
            let (verdict, text) = line.split_once(": ").expect("a verdict and a text");
            assert_eq!((MEDIA_TYPE.parse)(text, Path::new("")).is_ok(), verdict == "valid", "{text:?}");
        }
    }

    #[test]
    fn accepts_media_types_and_ranges() {
        for (text, is_type, is_range) in [
            ("text/html", true, true),
            ("a/b+c", true, true),
            ("image/*", false, true),
            ("*/*", false, false),
            ("text/html; q=1", false, false),
            ("text", false, false),
            ("text/", false, false),
            ("/x", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_media_type(text, false), is_media_type(text, true)),
                (is_type, is_range),
                "{text}"
            );
        }
    }
}
