//! What is tried for a path: files whose names follow from it, one after the other.

use crate::limits::{INDEX_NAMES_MAX, TRY_FILES_MAX};
use crate::options::{BadOption, FindOptions};
use crate::plan::{bad_segment, file_name};
use crate::resolve::Shape;

/// What stands for the path in an option.
const PATH: &str = "{path}";
/// What pages are called where their paths have no extension.
pub(crate) const PAGE: &[u8] = b".html";

/// What is tried, and the names of indexes.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) each: Vec<Candidate>,
    pub(crate) index: Vec<Vec<u8>>,
}

/// One thing to be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// The file of this very name.
    Itself,
    /// The folder of this name.
    Folder,
    /// A file whose name is made from the path, or is a certain one.
    Named(Pattern),
    /// Nothing more is tried.
    Status(u16),
}

/// How a file's name is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// What stands in front of the path: nothing, or folders with a slash behind. Without a path the whole name.
    before: Vec<u8>,
    /// What stands behind the path; `None` where there is no path.
    after: Option<Vec<u8>>,
    /// Whether it is the index of the folder of this name: relative links in it need the slash behind that.
    pub(crate) is_index: bool,
}

impl Candidates {
    pub(crate) fn new(find: &FindOptions) -> Result<Self, BadOption> {
        let index = index_names(&find.index)?;
        let mut each = Vec::new();
        if find.try_files.len() > TRY_FILES_MAX {
            return Err(BadOption::new("try_files", &find.try_files[TRY_FILES_MAX], "there are too many"));
        }
        for (place, text) in find.try_files.iter().enumerate() {
            let candidate = Candidate::parse(text, &find.index)?;
            if matches!(candidate, Candidate::Status(_)) && place + 1 < find.try_files.len() {
                return Err(BadOption::new(
                    "try_files",
                    text,
                    "a status ends the list: nothing behind it would be tried",
                ));
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

    /// Whether a file of this name is always what is sent for it.
    pub(crate) fn begins_with_itself(&self) -> bool {
        self.each.first() == Some(&Candidate::Itself)
    }
}

/// Pages are tried behind the file itself, unless they are already.
fn add_pages(each: &mut Vec<Candidate>) {
    if !each.iter().any(Candidate::is_page) {
        let page = Pattern { before: Vec::new(), after: Some(PAGE.to_vec()), is_index: false };
        let page = Candidate::Named(page);
        let behind = each.iter().position(|candidate| *candidate == Candidate::Itself);
        each.insert(behind.map_or(0, |place| place + 1), page);
    }
}

fn index_names(names: &[String]) -> Result<Vec<Vec<u8>>, BadOption> {
    for (place, name) in names.iter().enumerate() {
        let why = match bad_segment(name) {
            _ if name.contains('/') => Some("it is a name in the folder, without a slash"),
            None if place >= INDEX_NAMES_MAX => Some("there are too many"),
            why => why,
        };
        if let Some(why) = why {
            return Err(BadOption::new("index", name, why));
        }
    }
    Ok(names.iter().map(|name| name.as_bytes().to_vec()).collect())
}

impl Candidate {
    /// Whether it is the page of this name, `{path}.html`.
    pub(crate) fn is_page(&self) -> bool {
        matches!(self, Self::Named(made) if made.before.is_empty() && made.after.as_deref() == Some(PAGE))
    }

    /// The file that it is whatever the path.
    pub(crate) fn certain_file(&self) -> Option<&[u8]> {
        match self {
            Self::Named(Pattern { before, after: None, .. }) => Some(before),
            _ => None,
        }
    }

    fn parse(text: &str, index: &[String]) -> Result<Self, BadOption> {
        if let Some(status) = text.strip_prefix('=') {
            return parse_status(status)
                .map(Self::Status)
                .ok_or_else(|| BadOption::new("try_files", text, "a status is one of an error that needs no fields: 400 to 599, but not 401, 405, 407 or 426"));
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

/// Three digits of an error that is one by itself: some say what may be done instead, in fields (RFC 9110 section 15.5).
fn parse_status(digits: &str) -> Option<u16> {
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let status = digits.parse().ok().filter(|_| is_number)?;
    matches!(status, 400 | 402..=404 | 406 | 408..=425 | 427..=599).then_some(status)
}

impl Pattern {
    fn around_path(text: &str, before: &str, after: &str, index: &[String]) -> Result<Self, BadOption> {
        // With a path of one name it is a file's path, or it never is one.
        // The path has its slash in front, and some write one more.
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

    /// Whether the file's name has to do with the path.
    pub(crate) const fn is_of_path(&self) -> bool {
        self.after.is_some()
    }

    /// Writes the file's name for a path's name into `file`. False where there is none: a slash behind a path asks for a folder.
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
