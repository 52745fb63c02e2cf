//! What `Cache-Control` says of a file, by its media type and path (RFC 9111 section 5.2): the first rule that holds.

use shearwater::FieldLines;

use crate::limits::CACHE_RULES_MAX;
use crate::options::BadOption;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRule {
    /// The files that it holds for.
    pub files: FileMatch,
    /// What the field says, such as `no-cache` or `public, max-age=31536000, immutable`.
    pub value: String,
}

/// Which files a rule holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileMatch {
    /// Those of a media type, `text/html`, or of a kind of them, `image/*`. Its parameters don't count.
    Type(String),
    /// The file at this path of the folder, `/sw.js`; or all whose paths begin and end so, `/assets/*`, `*.js`, `/a/*.css`. It is the path of the
    /// file that is sent, not the one that was asked for: `/` may be `/index.html`.
    Path(String),
}

/// Rules as a worker uses them.
#[derive(Debug)]
pub(crate) struct CacheRules {
    rules: Vec<CacheRule>,
}

impl CacheRules {
    pub(crate) fn new(rules: &[CacheRule]) -> Result<Self, BadOption> {
        for (place, rule) in rules.iter().enumerate() {
            let (FileMatch::Type(files) | FileMatch::Path(files)) = &rule.files;
            if let Some(why) = rule.files.fault() {
                return Err(BadOption::new("cache_control", files, why));
            }
            if place >= CACHE_RULES_MAX {
                return Err(BadOption::new("cache_control", files, "there are too many rules"));
            }
            if rule.value.trim().is_empty() || FieldLines::new().push("Cache-Control", &rule.value).is_err() {
                return Err(BadOption::new("cache_control", &rule.value, "it can't be sent as a field"));
            }
        }
        Ok(Self { rules: rules.to_vec() })
    }

    /// What is said of the file of this name and type, if anything.
    pub(crate) fn of(&self, name: &[u8], media_type: &str) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.files.holds(name, media_type));
        rule.map(|rule| rule.value.as_str())
    }
}

impl FileMatch {
    fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Type(files) if !is_type(files) => {
                Some("it is no media type: they read text/html or image/*")
            }
            Self::Path(files) if files.matches('*').count() > 1 => Some("a path has one star at most"),
            Self::Path(files) if !files.starts_with(['/', '*']) => {
                Some("a path begins with a slash or a star")
            }
            Self::Type(_) | Self::Path(_) => None,
        }
    }

    fn holds(&self, name: &[u8], media_type: &str) -> bool {
        match self {
            Self::Type(files) => type_holds(files, essence(media_type)),
            Self::Path(files) => path_holds(files.as_bytes(), name),
        }
    }
}

/// Two words with a slash between them; the second may be a star.
fn is_type(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"/;,*".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, own)| is_word(kind) && (is_word(own) || own == "*"))
}

fn type_holds(files: &str, essence: &str) -> bool {
    match files.strip_suffix('*') {
        Some(kind) => essence.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)),
        None => essence.eq_ignore_ascii_case(files),
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or(media_type).trim()
}

/// Names have no slash in front.
fn path_holds(files: &[u8], name: &[u8]) -> bool {
    let path_starts = |start: &[u8]| match start.strip_prefix(b"/") {
        Some(start) => name.starts_with(start),
        None => true,
    };
    match files.iter().position(|&byte| byte == b'*') {
        None => files.strip_prefix(b"/") == Some(name),
        Some(at) => {
            let (start, end) = (&files[..at], &files[at + 1..]);
            // Start and end are not the same bytes of a short path.
            path_starts(start) && name.ends_with(end) && name.len() + 1 >= start.len() + end.len()
        }
    }
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
    fn the_first_rule_that_holds_counts() {
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
    fn what_means_nothing_is_refused() {
        for files in [
            by_path("assets/*"),
            by_path("/a/*/b*"),
            by_path(""),
            by_type("html"),
            by_type("*/*"),
            by_type("a/b;c"),
            by_type("/b"),
        ] {
            assert!(CacheRules::new(&[rule(files.clone(), "no-cache")]).is_err(), "{files:?}");
        }
        for value in ["", " ", "no-cache\r\nX: y", "\u{7f}"] {
            assert!(CacheRules::new(&[rule(by_path("/*"), value)]).is_err(), "{value:?}");
        }
    }

    #[test]
    fn there_are_so_many_rules_at_most() {
        use crate::limits::CACHE_RULES_MAX;
        let rules = |count| vec![rule(by_path("/*"), "no-cache"); count];
        assert!(CacheRules::new(&rules(CACHE_RULES_MAX)).is_ok());
        assert!(CacheRules::new(&rules(CACHE_RULES_MAX + 1)).is_err());
    }
}
