//! Candidates for a path: files whose names are derived from it, tried in order.

use crate::limits::{INDEX_NAMES_MAX, TRY_FILES_MAX};
use crate::options::{BadOption, FindOptions};
use crate::resolve::Shape;
use crate::settings::{bad_segment, file_name};

/// Placeholder of the path in an option.
const PATH: &str = "{path}";
/// Extension of pages that are served without one.
pub(crate) const PAGE_EXTENSION: &[u8] = b".html";

/// The candidates of a folder and the names of its indexes.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) each: Vec<Candidate>,
    pub(crate) index: Vec<Vec<u8>>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// The file with the path's name.
    Itself,
    /// The folder with the path's name.
    Folder,
    /// A file whose name is derived from the path, or is fixed.
    Named(Pattern),
    /// A status that ends the list.
    Status(u16),
}

/// A pattern for a file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Prefix of the path: empty, or folders with a trailing slash. The whole name if it is fixed.
    before: Vec<u8>,
    /// Suffix of the path; `None` for a fixed name.
    after: Option<Vec<u8>>,
    /// True for the index of the folder with the path's name: relative links in it need a trailing slash.
    pub(crate) is_index: bool,
}

impl Candidates {
    pub(crate) fn new(find: &FindOptions) -> Result<Self, BadOption> {
        let index = index_names(&find.index)?;
        let mut each = Vec::new();
        if find.try_files.len() > TRY_FILES_MAX {
            return Err(BadOption::new("try_files", &find.try_files[TRY_FILES_MAX], "too many values"));
        }
        for (place, text) in find.try_files.iter().enumerate() {
            let candidate = Candidate::parse(text, &find.index)?;
            if matches!(candidate, Candidate::Status(_)) && place + 1 < find.try_files.len() {
                return Err(BadOption::new("try_files", text, "a status must be the last candidate"));
            }
            each.push(candidate);
        }
        if each.is_empty() {
            each = vec![Candidate::Itself, Candidate::Folder];
        }
        if find.clean_urls {
            add_pages(&mut each);
        }
        Ok(Self { each, index })
    }

    /// Returns whether the file with the path's name is tried first.
    pub(crate) fn tries_itself_first(&self) -> bool {
        self.each.first() == Some(&Candidate::Itself)
    }
}

/// Inserts pages after the file itself, unless they are listed.
fn add_pages(each: &mut Vec<Candidate>) {
    if !each.iter().any(Candidate::is_page) {
        let page = Pattern { before: Vec::new(), after: Some(PAGE_EXTENSION.to_vec()), is_index: false };
        let page = Candidate::Named(page);
        let itself = each.iter().position(|candidate| *candidate == Candidate::Itself);
        each.insert(itself.map_or(0, |place| place + 1), page);
    }
}

fn index_names(names: &[String]) -> Result<Vec<Vec<u8>>, BadOption> {
    for (place, name) in names.iter().enumerate() {
        let why = match bad_segment(name) {
            _ if name.contains('/') => Some("an index must be a file name without a slash"),
            None if place >= INDEX_NAMES_MAX => Some("too many values"),
            why => why,
        };
        if let Some(why) = why {
            return Err(BadOption::new("index", name, why));
        }
    }
    Ok(names.iter().map(|name| name.as_bytes().to_vec()).collect())
}

impl Candidate {
    /// Returns whether this is the page of the path, `{path}.html`.
    pub(crate) fn is_page(&self) -> bool {
        let extension = Some(PAGE_EXTENSION);
        matches!(self, Self::Named(made) if made.before.is_empty() && made.after.as_deref() == extension)
    }

    /// Returns the name of a fixed file.
    pub(crate) fn fixed_file(&self) -> Option<&[u8]> {
        match self {
            Self::Named(Pattern { before, after: None, .. }) => Some(before),
            _ => None,
        }
    }

    fn parse(text: &str, index: &[String]) -> Result<Self, BadOption> {
        if let Some(status) = text.strip_prefix('=') {
            return parse_status(status).map(Self::Status).ok_or_else(|| {
                BadOption::new(
                    "try_files",
                    text,
                    "expected an error status, 400 to 599 except 401, 405, 407 and 426",
                )
            });
        }
        match text.split_once(PATH) {
            None => Ok(Self::Named(Pattern {
                before: file_name("try_files", text)?,
                after: None,
                is_index: false,
            })),
            Some(("", "")) => Ok(Self::Itself),
            Some(("", "/")) => Ok(Self::Folder),
            Some((before, after)) => Pattern::around_path(text, before, after, index).map(Self::Named),
        }
    }
}

/// Parses an error status. Rejects those that require header fields (RFC 9110 section 15.5).
fn parse_status(digits: &str) -> Option<u16> {
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let status = digits.parse().ok().filter(|_| is_number)?;
    matches!(status, 400 | 402..=404 | 406 | 408..=425 | 427..=599).then_some(status)
}

impl Pattern {
    fn around_path(text: &str, before: &str, after: &str, index: &[String]) -> Result<Self, BadOption> {
        // Validated with a path of one name: other paths can't make it invalid. `before` may end with an extra slash.
        let before = before.strip_suffix('/').unwrap_or(before);
        let of = |path: &str| {
            file_name("try_files", path).map_err(|bad| BadOption::new("try_files", text, bad.why))
        };
        let with_a_name = of(&format!("{before}/x{after}"))?;
        let folders = before.trim_matches('/');
        let mut before = if folders.is_empty() { Vec::new() } else { of(&format!("/{folders}"))? };
        if !before.is_empty() {
            before.push(b'/');
        }
        let after = with_a_name[before.len() + 1..].to_vec();
        let is_index =
            after.strip_prefix(b"/").is_some_and(|name| index.iter().any(|index| index.as_bytes() == name));
        Ok(Self { is_index: is_index && before.is_empty(), before, after: Some(after) })
    }

    /// Returns whether the file's name depends on the path.
    pub(crate) const fn depends_on_path(&self) -> bool {
        self.after.is_some()
    }

    /// Writes the file's name for a path's name to `file`. Returns false if there is none: a trailing slash requests a
    /// folder.
    pub(crate) fn write(&self, name: &[u8], shape: Shape, file: &mut Vec<u8>) -> bool {
        file.clear();
        file.extend_from_slice(&self.before);
        let Some(after) = &self.after else { return true };
        if shape == Shape::Directory && !after.starts_with(b"/") {
            return false;
        }
        file.extend_from_slice(name.strip_suffix(b"/").unwrap_or(name));
        let has_slash = file.is_empty() || file.ends_with(b"/");
        file.extend_from_slice(if has_slash { after.strip_prefix(b"/").unwrap_or(after) } else { after });
        true
    }
}
