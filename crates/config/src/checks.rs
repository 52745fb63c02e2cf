//! What admits a text: host names, fields, media types, paths. An error is the end of a sentence that begins with the text.

use crate::sections::site::Pattern;

/// What the `*` of a redirect stands for.
pub(crate) const REST: &str = "{rest}";

/// What stands for the request's path in `try_files`.
const PATH: &str = "{path}";

/// Labels and names of DNS (RFC 1035 section 2.3.4): its 255 bytes of a name have one for the length of the first label and one for the root,
/// which is 253 as text, a dot at the end not counted. `*.` counts as the least that may stand there.
const LABEL_BYTES_MAX: usize = 63;
const HOST_BYTES_MAX: usize = 253;

/// Any text.
#[expect(clippy::unnecessary_wraps, reason = "one check among others, which all have one shape")]
pub(crate) fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A host name, in lower case and without the dot at its end: a name, an address, or `*.` before a name.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let plain = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let address = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()) {
        return Ok(plain);
    }
    if plain.contains("://") || plain.contains('/') {
        return Err("is a URL; wanted is the host name in it".to_owned());
    }
    if plain.contains(':') {
        return Err(
            "has a port; a site is for a host on every port (an IPv6 address stands in brackets)".to_owned()
        );
    }
    let name = plain.strip_prefix("*.").unwrap_or(&plain);
    if name.contains('*') {
        return Err(
            "has a * where none may be; it stands for whole labels, in front: *.example.org".to_owned()
        );
    }
    if !name.is_ascii() {
        return Err("is not in the form that clients send; wanted is its xn-- form".to_owned());
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if plain.len() > HOST_BYTES_MAX || !name.split('.').all(is_label) {
        return Err("is no host name: letters, digits and hyphens, with dots between".to_owned());
    }
    Ok(plain)
}

/// The name of a field (RFC 9110 section 5.1).
pub(crate) fn field_name(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(is_token_byte) {
        return Ok(text.to_owned());
    }
    Err("is no name of a field: letters, digits and hyphens, without a space or colon".to_owned())
}

/// The value of a field (RFC 9110 section 5.5), in ASCII, as it asks of new ones.
pub(crate) fn field_value(text: &str) -> Result<String, String> {
    if text != text.trim_matches([' ', '\t']) {
        return Err("begins or ends with a space, which no client sees".to_owned());
    }
    if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t') {
        return Err("can't be a field's value: only printable ASCII, and no line breaks".to_owned());
    }
    Ok(text.to_owned())
}

/// A media type, perhaps with parameters (RFC 9110 section 8.3.1).
pub(crate) fn media_type(text: &str) -> Result<String, String> {
    let essence = text.split(';').next().unwrap_or("").trim_end();
    if is_essence(essence, false) && field_value(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err("is no media type; such as text/html or text/plain; charset=utf-8".to_owned())
}

/// A media type without parameters, or all of a kind.
pub(crate) fn media_range(text: &str) -> Result<String, String> {
    if is_essence(text, true) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("is no media type; such as text/html, without parameters, or image/*".to_owned())
}

fn is_essence(text: &str, may_be_all: bool) -> bool {
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_token_byte);
    text.split_once('/').is_some_and(|(kind, subtype)| {
        is_token(kind) && kind != "*" && is_token(subtype) && (may_be_all || subtype != "*")
    })
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A path of a site, written out: without dot segments and empty ones.
pub(crate) fn url_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err("is no path of the site: it begins with /".to_owned());
    }
    if text.split('/').any(|segment| segment == "." || segment == "..") {
        return Err("has a . or .. in it; write the path that it leads to".to_owned());
    }
    if text.contains("//") {
        return Err("has an empty part: two slashes in a row".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("has a control character in it".to_owned());
    }
    if let Some(special) = text.chars().find(|c| matches!(c, '?' | '#')) {
        return Err(format!("has a {special}; a path has neither query nor fragment"));
    }
    Ok(text.to_owned())
}

/// A path of a site as it stands in a request: percent-encoded where it has to be.
pub(crate) fn encoded_path(text: &str) -> Result<String, String> {
    let path = url_path(text)?;
    let mut escapes = path.split('%').skip(1);
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !escapes.all(is_escape) {
        return Err("has a % without two hexadecimal digits; a percent sign is written %25".to_owned());
    }
    Ok(path)
}

/// The path of a file.
pub(crate) fn file_path(text: &str) -> Result<String, String> {
    let path = encoded_path(text)?;
    if path.ends_with('/') || path.contains(['{', '}']) {
        return Err("is the path of no certain file".to_owned());
    }
    Ok(path)
}

/// A percent-encoded path of files with one `*` at most.
pub(crate) fn file_glob(text: &str) -> Result<String, String> {
    if !text.starts_with(['/', '*']) || text.matches('*').count() > 1 {
        return Err("is none of /file, /folder/*, *.extension: it begins with / or *, and has one * at most"
            .to_owned());
    }
    if text.ends_with('/') {
        return Err(format!("is the path of a folder; its files are {text}*"));
    }
    encoded_path(&format!("/{}", text.trim_start_matches('/'))).map(|_| text.to_owned())
}

/// What `Cache-Control` says.
pub(crate) fn cache_value(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("says nothing: leave the rule out, or let it say no-cache".to_owned());
    }
    field_value(text)
}

/// A path, or `/…/*` for one with all beneath it. It is read as that of a request.
pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    let (path, is_prefix) = match text.strip_suffix('*') {
        Some(path) => (path, true),
        None => (text, false),
    };
    if path.contains('*') || is_prefix && !path.ends_with('/') {
        return Err(
            "has a * where none may be; it stands for all beneath a path: /assets/* (a star itself is %2A)"
                .to_owned(),
        );
    }
    let path = encoded_path(path)?;
    Ok(if is_prefix { Pattern::Prefix(path) } else { Pattern::Exact(path) })
}

/// Returns the pattern to suggest for a path with a parameter (`/user/{id}`: `/user/*`); `None` if it has none.
pub(crate) fn parameter(path: &str) -> Option<String> {
    let is_between = |segment: &str, open, close| {
        segment.split_once(open).is_some_and(|(_, behind): (&str, &str)| behind.contains(close))
    };
    let is_parameter = |segment: &str| {
        let name = segment.strip_prefix(':').filter(|name| name.starts_with(char::is_alphabetic));
        name.is_some() || is_between(segment, '{', '}') || is_between(segment, '<', '>')
    };
    let before: Vec<_> = path.split('/').take_while(|segment| !is_parameter(segment)).collect();
    (before.len() < path.split('/').count()).then(|| format!("{}/*", before.join("/")))
}

/// Where a redirect leads: a path of the site or a whole URL. What looks like a path and leads to another site is refused.
pub(crate) fn redirect_target(text: &str) -> Result<String, String> {
    if !text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Err(
            "can't stand in a Location as it is: percent-encode spaces and what isn't ASCII".to_owned()
        );
    }
    if text.replace(REST, "").contains(['{', '}']) {
        return Err(format!("has braces in it; the only thing that may stand in them is {REST}"));
    }
    rest_stands_in_path(text)?;
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match authority {
        Some(rest) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or("");
            if host.is_empty() || host.contains(['\\', '@']) {
                return Err("has no host of its own".to_owned());
            }
        }
        None if !text.starts_with('/') => {
            return Err("is neither a path of the site (/new) nor a URL (https://example.org/)".to_owned());
        }
        None if text.starts_with("//") || text.starts_with("/\\") => {
            return Err("leads to another site; write that with https:// in front".to_owned());
        }
        None => {}
    }
    Ok(text.to_owned())
}

/// `{rest}` stands once, and where it can't become a host, a query or a fragment.
fn rest_stands_in_path(text: &str) -> Result<(), String> {
    let Some((before, after)) = text.split_once(REST) else { return Ok(()) };
    let path = before.find("://").map_or(before, |at| &before[at + 3..]);
    if !path.contains('/') || !before.ends_with('/') || before.contains(['?', '#']) || after.contains(REST) {
        return Err(format!("may have {REST} once, right behind a / of its path"));
    }
    Ok(())
}

/// A file's name, in no other folder.
pub(crate) fn index_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '\0']) || text == "." || text == ".." {
        return Err("is no name of a file in the folder itself".to_owned());
    }
    Ok(text.to_owned())
}

/// An extension, in lower case, without its dot.
pub(crate) fn extension(text: &str) -> Result<String, String> {
    let plain = text.strip_prefix('.').unwrap_or(text).to_ascii_lowercase();
    if plain.is_empty() || plain.contains(['/', '.', '\0']) {
        return Err("is no extension, which is what follows the last dot of a name: foo".to_owned());
    }
    Ok(plain)
}

/// A status of an error.
pub(crate) fn error_status(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(status @ 400..=599) => Ok(status),
        _ => Err("is no status of an error: 400 to 599".to_owned()),
    }
}

/// What `try_files` may look for. A status may stand at the end only, which is checked where the list is known.
pub(crate) fn try_file(text: &str) -> Result<String, String> {
    if let Some(status) = text.strip_prefix('=') {
        return match error_status(status.trim_start())? {
            401 | 405 | 407 | 426 => Err("needs fields that say what may be done instead".to_owned()),
            status => Ok(format!("={status}")),
        };
    }
    let without = text.replacen(PATH, "/path", 1);
    if without.contains(['{', '}']) {
        return Err(format!("has braces in it; the only thing that may stand in them is {PATH}, once"));
    }
    if !text.starts_with(PATH) && !text.starts_with('/') {
        return Err(format!("begins with neither {PATH} nor /"));
    }
    encoded_path(&without.replacen("//", "/", 1)).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all<T: std::fmt::Debug>(check: fn(&str) -> Result<T, String>, right: &[&str], wrong: &[&str]) {
        for text in right {
            assert!(check(text).is_ok(), "{text:?}: {:?}", check(text));
        }
        for text in wrong {
            assert!(check(text).is_err(), "{text:?}: {:?}", check(text));
        }
    }

    #[test]
    fn hosts() {
        let long = format!("{}.org", "a".repeat(64));
        all(
            host,
            &[
                "example.org",
                "EXAMPLE.org.",
                "localhost",
                "*.example.org",
                "127.0.0.1",
                "[::1]",
                "a_b.c",
                "xn--e1afmkfd",
            ],
            &[
                "", "*", "*.", "a..b", "a b", "http://a", "a/b", "a:80", "::1", "[::1]:80", "a*.b", "*.*.a",
                "é.org", &long, ".",
            ],
        );
        let of_len = |len: usize| "a.".repeat(len / 2) + "a";
        assert_eq!((of_len(253).len(), of_len(255).len()), (253, 255));
        let beneath = format!("*.{}", of_len(251));
        assert!(
            host(&of_len(253)).is_ok()
                && host(&format!("{}.", of_len(253))).is_ok()
                && host(&beneath).is_ok()
        );
        assert!(host(&of_len(255)).is_err() && host(&format!("*.{}", of_len(253))).is_err());
        assert_eq!(host("*.Example.ORG.").as_deref(), Ok("*.example.org"));
    }

    #[test]
    fn fields() {
        all(field_name, &["X-Frame-Options", "a", "x_y"], &["", "a b", "a:", "é", "a\r"]);
        all(field_value, &["", "a b", "max-age=1, public", "a\tb"], &[" a", "a ", "a\r\nb: c", "é", "\u{0}"]);
        all(
            media_type,
            &["text/html", "text/html; charset=utf-8", "a/b+c"],
            &["", "text", "text/", "/x", "*/*", "a/b\n", "text/*"],
        );
        all(media_range, &["text/html", "image/*"], &["*/*", "text/html; q=1", "image", "*"]);
    }

    #[test]
    fn paths() {
        all(
            url_path,
            &["/", "/a/b.html", "/é", "/a%20b"],
            &["", "a", "/a/../b", "/.", "//a", "/a//b", "/a?b", "/a#b", "/\n"],
        );
        all(pattern, &["/", "/a", "/a/*", "/*", "/a/"], &["*", "/a*", "/a/*/b", "/**", "a/*", "/a/../*", ""]);
        assert_eq!(pattern("/a/*"), Ok(Pattern::Prefix("/a/".to_owned())));
        all(
            redirect_target,
            &[
                "/new",
                "/new/{rest}",
                "/{rest}",
                "https://example.org/{rest}?a=b",
                "http://a",
                "/a?b#c",
                "https://a:8/",
            ],
            &[
                "",
                "new",
                "/a{rest}",
                "/{rest}/{rest}",
                "/a?b={rest}",
                "/#{rest}",
                "https://a{rest}",
                "//evil",
                "/\\evil",
                "https://",
                "https:///x",
                "https://{rest}",
                "ftp://a/",
                "/a b",
                "/{path}",
                "https://a@b/",
                "/é",
                "/a\n",
            ],
        );
    }

    #[test]
    fn files() {
        all(index_name, &["index.html", "a b"], &["", "a/b", ".", "..", "a\0"]);
        all(file_path, &["/index.html", "/a/b", "/100%25.html"], &["/", "/a/", "a", "/{path}", "/100%.html"]);
        all(
            file_glob,
            &["/sw.js", "/assets/*", "*.map", "/a/*.css", "*", "/100%25", "/a%20b/*"],
            &["", "a", "/a/*/*", "/../*", "/a?*", "/100%", "*%4", "/", "/assets/", "/a*/"],
        );
        all(cache_value, &["no-cache"], &["", " ", "é"]);
        all(extension, &["foo", ".Foo", "br"], &["", ".", "a.b", "a/b"]);
        all(error_status, &["404", "500", "599"], &["399", "600", "", "4o4", "-1"]);
        all(
            try_file,
            &[
                "{path}",
                "{path}.html",
                "{path}/index.html",
                "/index.html",
                "=404",
                "= 503",
                "/x{path}",
                "/100%25",
            ],
            &[
                "",
                "index.html",
                "{name}",
                "{path}/../x",
                "=200",
                "=401",
                "=",
                "x{path}",
                "/a?b",
                "/100%",
                "{path}%4",
            ],
        );
        assert_eq!(try_file("= 404").as_deref(), Ok("=404"));
    }
}
