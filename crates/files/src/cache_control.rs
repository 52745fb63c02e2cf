//! `Cache-Control` of files by media type and path (RFC 9111 section 5.2): the first matching rule.

use shearwater::engine::FieldLines;
use shearwater::engine::media_type::is_token;

use crate::limits::CACHE_RULES_MAX;
use crate::options::{BadOption, CacheRule, FileMatch, decoded};

/// Compiled rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CacheRules {
    rules: Vec<CompiledRule>,
}

#[derive(Debug, PartialEq, Eq)]
struct CompiledRule {
    files: Matcher,
    value: String,
}

/// Compiled selection of files, by media type or name. Names have no leading slash.
#[derive(Debug, PartialEq, Eq)]
enum Matcher {
    Type(String),
    Name(Vec<u8>),
    Ends { start: Vec<u8>, end: Vec<u8> },
}

impl CacheRules {
    pub(crate) fn new(rules: &[CacheRule]) -> Result<Self, BadOption> {
        if let Some(CacheRule { files: FileMatch::Type(files) | FileMatch::Path(files), .. }) =
            rules.get(CACHE_RULES_MAX)
        {
            return Err(BadOption::new(OPTION, files, "too many rules"));
        }
        rules.iter().map(CompiledRule::new).collect::<Result<_, _>>().map(|rules| Self { rules })
    }

    /// Returns the value for a file of this name and type.
    pub(crate) fn of(&self, name: &[u8], media_type: &str) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.files.matches(name, media_type));
        rule.map(|rule| rule.value.as_str())
    }
}

impl CompiledRule {
    fn new(rule: &CacheRule) -> Result<Self, BadOption> {
        let files = Matcher::new(&rule.files)?;
        if rule.value.trim().is_empty() || FieldLines::new().push("Cache-Control", &rule.value).is_err() {
            return Err(BadOption::new(OPTION, &rule.value, "not a valid header value"));
        }
        if let Some(wrong) = rule.value.split(',').map(str::trim).find(|directive| !is_directive(directive)) {
            return Err(BadOption::new(
                OPTION,
                wrong,
                "expected a directive such as max-age=3600 or no-cache",
            ));
        }
        Ok(Self { files, value: rule.value.clone() })
    }
}

/// Returns whether this is a name, or a name with a value (RFC 9111 section 5.2). A number alone would be a name. Values in
/// quotes aren't checked: they may have commas.
fn is_directive(text: &str) -> bool {
    let (name, value) = text.split_once('=').unwrap_or((text, "none"));
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('"') || is_token(name) && !is_number && is_token(value)
}

impl Matcher {
    fn new(files: &FileMatch) -> Result<Self, BadOption> {
        match files {
            FileMatch::Type(files) if is_type(files) => Ok(Self::Type(files.clone())),
            FileMatch::Type(files) => {
                Err(BadOption::new(OPTION, files, "expected a media type such as text/html or image/*"))
            }
            FileMatch::Path(path) => Self::of_path(path),
        }
    }

    /// Parses a path. The star is found before decoding, so that `%2A` is a star in a name.
    fn of_path(path: &str) -> Result<Self, BadOption> {
        let bad = |why| BadOption::new(OPTION, path, why);
        let name = |text: &str| decoded(text).map_err(bad);
        if !path.starts_with(['/', '*']) {
            return Err(bad("a path begins with a slash or a star"));
        }
        if path.ends_with('/') {
            return Err(bad("this is the path of a folder; its files are /folder/*"));
        }
        let Some((start, end)) = path.split_once('*') else { return name(path).map(Self::Name) };
        if end.contains('*') {
            return Err(bad("a path has at most one star"));
        }
        // A letter in place of the star keeps the slashes and dots next to it from being normalised.
        let start = if start.is_empty() { "/" } else { start };
        let mut start = name(&format!("{start}x"))?;
        start.pop();
        let end = name(&format!("/x{end}"))?.split_off(1);
        Ok(Self::Ends { start, end })
    }

    fn matches(&self, name: &[u8], media_type: &str) -> bool {
        match self {
            Self::Type(files) => type_matches(files, essence(media_type)),
            Self::Name(known) => known == name,
            // The start and the end must not overlap.
            Self::Ends { start, end } => {
                name.strip_prefix(&start[..]).is_some_and(|rest| rest.ends_with(end))
            }
        }
    }
}

/// The name of the option in errors.
const OPTION: &str = "cache_control";

/// Returns whether this is `type/subtype` or `type/*`.
fn is_type(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"/;,*".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, own)| is_word(kind) && (is_word(own) || own == "*"))
}

fn type_matches(files: &str, essence: &str) -> bool {
    match files.strip_suffix('*') {
        Some(kind) => essence.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)),
        None => essence.eq_ignore_ascii_case(files),
    }
}

/// Returns a media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or(media_type).trim()
}

#[cfg(test)]
mod tests {
    use super::{CacheRule, CacheRules, FileMatch};

    fn rule(files: FileMatch, value: &str) -> CacheRule {
        CacheRule { files, value: value.to_owned() }
    }

    fn by_path(files: &str) -> FileMatch {
        FileMatch::Path(files.to_owned())
    }

    fn by_type(files: &str) -> FileMatch {
        FileMatch::Type(files.to_owned())
    }

    #[test]
    fn rejects_values_that_are_no_directives() {
        for (value, is_valid) in [
            ("no-cache", true),
            ("public, max-age=3600, stale-while-revalidate=60", true),
            ("no-cache=\"Set-Cookie, X\", private", true),
            ("3600", false),
            ("max-age = 60", false),
            ("max-age=", false),
            ("public,", false),
            ("public max-age=60", false),
        ] {
            assert_eq!(CacheRules::new(&[rule(by_path("/*"), value)]).is_ok(), is_valid, "{value}");
        }
    }

    #[test]
    fn first_matching_cache_rule_wins() {
        let rules = CacheRules::new(&[
            rule(by_path("/assets/raw/*"), "no-store"),
            rule(by_path("/assets/*"), "immutable"),
            rule(by_type("Text/HTML"), "no-cache"),
            rule(by_type("image/*"), "max-age=60"),
            rule(by_path("/sw.js"), "no-cache, private"),
            rule(by_path("*.map"), "max-age=1"),
            rule(by_path("/a*a"), "max-age=2"),
        ]);
        let rules = rules.expect("rules");
        for (name, media_type, value) in [
            ("assets/raw/x", "text/html", Some("no-store")),
            ("assets/x", "text/html", Some("immutable")),
            ("assets", "application/x", None),
            ("x", "text/html; charset=utf-8", Some("no-cache")),
            ("x", "text/htmlx", None),
            ("x", "IMAGE/png", Some("max-age=60")),
            ("x", "imag", None),
            ("sw.js", "text/javascript", Some("no-cache, private")),
            ("b/sw.js", "text/javascript", None),
            ("b/c.map", "application/json", Some("max-age=1")),
            (".map", "application/json", Some("max-age=1")),
            ("a", "application/x", None),
            ("aa", "application/x", Some("max-age=2")),
            ("", "application/x", None),
        ] {
            assert_eq!(rules.of(name.as_bytes(), media_type), value, "{name} {media_type}");
        }
    }

    #[test]
    fn percent_decodes_paths() {
        for (files, name) in [
            ("/caf%C3%A9.html", "café.html"),
            ("/café.html", "café.html"),
            ("/a%20b/*", "a b/c"),
            ("*%2Ejs", "x.js"),
            ("/%61*%2ecss", "a/b.css"),
            ("/100%25", "100%"),
            ("/%2A", "*"),
            ("/%2A*", "*.txt"),
            ("//a//*", "a/b"),
            ("/.*", ".env"),
            ("/a/.*", "a/.env"),
        ] {
            let rules = CacheRules::new(&[rule(by_path(files), "no-cache")]).expect(files);
            assert_eq!(rules.of(name.as_bytes(), "a/b"), Some("no-cache"), "{files}");
            assert_eq!(rules.of(b"other", "a/b"), None, "{files}");
        }
        // An encoded star is no wildcard.
        let star = CacheRules::new(&[rule(by_path("/%2A"), "no-cache")]).expect("a rule");
        assert_eq!(star.of(b"abc", "a/b"), None);
    }

    #[test]
    fn rejects_invalid_rules() {
        let paths =
            "/100% /%zz/* *%4 /a%2Fb /%2e%2e/* /../* /a%00 / /assets/ /a*/ assets/* /a/*/b*".split(' ');
        let types = ["html", "*/*", "a/b;c", "/b"];
        for files in paths.chain([""]).map(by_path).chain(types.map(by_type)) {
            assert!(CacheRules::new(&[rule(files.clone(), "no-cache")]).is_err(), "{files:?}");
        }
        for value in ["", " ", "no-cache\r\nX: y", "\u{7f}"] {
            assert!(CacheRules::new(&[rule(by_path("/*"), value)]).is_err(), "{value:?}");
        }
    }

    #[test]
    fn limits_the_number_of_rules() {
        use crate::limits::CACHE_RULES_MAX;
        let rules = |count| vec![rule(by_path("/*"), "no-cache"); count];
        assert!(CacheRules::new(&rules(CACHE_RULES_MAX)).is_ok());
        assert!(CacheRules::new(&rules(CACHE_RULES_MAX + 1)).is_err());
    }
}
