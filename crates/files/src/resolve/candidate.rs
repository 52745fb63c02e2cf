//! Candidates for a path: files whose names are derived from it, tried in order.

use crate::limits::{INDEX_NAMES_MAX, TRY_FILES_MAX};
use crate::options::{BadOption, FolderOptions, bad_segment, file_name};
use crate::resolve::path::Shape;

/// Placeholder of the path in an option.
const PATH: &str = "{path}";
/// Extension of pages that are served without one.
pub(crate) const PAGE_EXTENSION: &[u8] = b".html";

/// The candidates for the paths of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) each: Vec<Candidate>,
    /// Names of indexes.
    pub(crate) index: Vec<Vec<u8>>,
    /// True if the first candidate is the file with the path's name.
    is_own_name_first: bool,
    /// True if each page has one path, without its extension.
    pub(crate) clean_urls: bool,
    /// True if folders without an index are listed.
    pub(crate) listing: bool,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// The file with the path's name.
    Itself,
    /// The folder with the path's name.
    Folder,
    /// A file whose name is derived from the path, or is fixed.
    Named(NamePattern),
    /// A status that ends the list.
    Status(u16),
}

/// A pattern for a file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePattern {
    /// Prefix of the path: empty, or folders with a trailing slash. The whole name if it is fixed.
    before: Vec<u8>,
    /// Suffix of the path; `None` for a fixed name.
    pub(crate) after: Option<Vec<u8>>,
    /// True for the index of the folder with the path's name: relative links in it need a trailing slash.
    pub(crate) is_index: bool,
}

impl Candidates {
    pub(crate) fn new(options: &FolderOptions) -> Result<Self, BadOption> {
        let find = &options.find;
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
        // Pages follow the file itself, unless they are listed.
        if find.clean_urls && !each.iter().any(Candidate::is_page) {
            let page =
                NamePattern { before: Vec::new(), after: Some(PAGE_EXTENSION.to_vec()), is_index: false };
            let itself = each.iter().position(|candidate| *candidate == Candidate::Itself);
            each.insert(itself.map_or(0, |place| place + 1), Candidate::Named(page));
        }
        let is_own_name_first = each.first() == Some(&Candidate::Itself);
        Ok(Self { each, index, is_own_name_first, clean_urls: find.clean_urls, listing: options.listing })
    }

    /// Returns the name of the file that is tried first for a path's name, if it is sent whenever it is there. Writes it
    /// to `buffer` if it isn't `name` itself.
    ///
    /// `None` if a redirect may take precedence, or if the first file doesn't depend on the path.
    #[inline]
    pub(crate) fn first<'a>(
        &self,
        name: &'a [u8],
        shape: Shape,
        buffer: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if shape == Shape::File && self.is_own_name_first && !self.clean_urls {
            return Some(name);
        }
        self.first_or_redirected(name, shape, buffer)
    }

    fn first_or_redirected<'a>(
        &self,
        name: &'a [u8],
        shape: Shape,
        buffer: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let file = match shape {
            Shape::File if self.is_own_name_first => name,
            Shape::Directory if self.first_for_folders() == Some(&Candidate::Folder) => {
                name.clone_into(buffer);
                buffer.extend_from_slice(self.index.first()?);
                buffer
            }
            _ => return None,
        };
        (!self.clean_urls || self.canonical(file) == name).then_some(file)
    }

    /// Returns the candidate that is tried first for a path with a trailing slash.
    fn first_for_folders(&self) -> Option<&Candidate> {
        self.each.iter().find(|candidate| **candidate != Candidate::Itself && !candidate.is_page())
    }

    /// Returns a file's canonical name: the folder of an index, a page without its extension, or the file itself.
    pub(crate) fn canonical<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let start = file.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let last = &file[start..];
        if self.index.iter().any(|index| index == last) {
            return &file[..start];
        }
        match file.strip_suffix(PAGE_EXTENSION) {
            Some(page) if last.len() > PAGE_EXTENSION.len() => page,
            _ => file,
        }
    }

    /// Returns the name that a file is redirected to if it exists. `None` if there is no redirect, or if it depends on
    /// other files.
    pub(crate) fn redirect_target<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        if !self.clean_urls || !self.is_own_name_first {
            return None;
        }
        let name = self.canonical(file);
        let is_found = match Shape::of(name) {
            // Only the first index of a folder doesn't depend on other files.
            Shape::Directory => {
                self.first_for_folders() == Some(&Candidate::Folder)
                    && self.index.first()? == &file[name.len()..]
            }
            Shape::File => self.each.get(1).is_some_and(Candidate::is_page),
        };
        (name != file && is_found).then_some(name)
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
            Self::Named(NamePattern { before, after: None, .. }) => Some(before),
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
            None => Ok(Self::Named(NamePattern {
                before: file_name("try_files", text)?,
                after: None,
                is_index: false,
            })),
            Some(("", "")) => Ok(Self::Itself),
            Some(("", "/")) => Ok(Self::Folder),
            Some((before, after)) => NamePattern::around_path(text, before, after, index).map(Self::Named),
        }
    }
}

/// Parses an error status. Rejects those that require header fields (RFC 9110 section 15.5).
fn parse_status(digits: &str) -> Option<u16> {
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let status = digits.parse().ok().filter(|_| is_number)?;
    matches!(status, 400 | 402..=404 | 406 | 408..=425 | 427..=599).then_some(status)
}

impl NamePattern {
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

#[cfg(test)]
mod tests {
    use super::{Candidates, Shape};
    use crate::options::{FindOptions, FolderOptions};

    fn candidates(index: [&str; 2], try_files: &[&str], clean_urls: bool) -> Candidates {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (index, try_files) = (owned(&index), owned(try_files));
        let find = FindOptions { index, try_files, clean_urls, spa: None };
        Candidates::new(&FolderOptions { find, ..FolderOptions::default() }).expect("valid options")
    }

    #[test]
    fn each_file_has_one_canonical_name() {
        let candidates = candidates(["index.html", "home.htm"], &[], true);
        for (file, path) in [
            ("index.html", ""),
            ("a/index.html", "a/"),
            ("a/home.htm", "a/"),
            ("a/xindex.html", "a/xindex"),
            ("about.html", "about"),
            ("a/b.c.html", "a/b.c"),
            ("a.htm", "a.htm"),
            ("a/.html", "a/.html"),
            (".html", ".html"),
            ("a.HTML", "a.HTML"),
            ("html", "html"),
        ] {
            assert_eq!(candidates.canonical(file.as_bytes()), path.as_bytes(), "{file}");
        }
    }

    #[test]
    fn the_first_file_is_sent_under_one_name_only() {
        for (clean_urls, try_files, name, first) in [
            (true, &[][..], "a/b.css", Some("a/b.css")),
            (true, &[], "about", Some("about")),
            (true, &[], "a/", Some("a/index.html")),
            (true, &[], "", Some("index.html")),
            // These are redirected.
            (true, &[], "about.html", None),
            (true, &[], "a/index.html", None),
            (true, &[], "home.htm", None),
            (false, &[], "about.html", Some("about.html")),
            (false, &[], "a/index.html", Some("a/index.html")),
            (false, &[], "a/home.htm", Some("a/home.htm")),
            (false, &["{path}/", "{path}"], "a", None),
            (false, &["{path}/", "{path}"], "a/", Some("a/index.html")),
            (false, &["/x", "{path}", "{path}/"], "a", None),
            (false, &["/x", "{path}", "{path}/"], "a/", None),
            (false, &["{path}", "/x"], "a/", None),
        ] {
            let candidates = candidates(["index.html", "home.htm"], try_files, clean_urls);
            let mut buffer = Vec::new();
            let found = candidates.first(name.as_bytes(), Shape::of(name.as_bytes()), &mut buffer);
            assert_eq!(found, first.map(str::as_bytes), "{name} {try_files:?}");
        }
    }

    #[test]
    fn redirects_are_certain_by_the_name_alone() {
        const USUAL: &[&str] = &[];
        for (clean_urls, try_files, file, name) in [
            (true, USUAL, "about.html", Some("about")),
            (true, USUAL, "a/index.html", Some("a/")),
            (true, USUAL, "index.html", Some("")),
            (true, USUAL, "about", None),
            (true, USUAL, "a/", None),
            (false, USUAL, "about.html", None),
            // There may be an index.html, which takes precedence.
            (true, USUAL, "a/home.html", None),
            (true, &["{path}", "{path}.html", "/x"], "about.html", Some("about")),
            (true, &["{path}", "/x", "{path}.html"], "about.html", None),
            (true, &["{path}", "/x", "{path}/"], "a/index.html", None),
            (true, &["/x", "{path}"], "about.html", None),
        ] {
            let candidates = candidates(["index.html", "home.html"], try_files, clean_urls);
            let target = candidates.redirect_target(file.as_bytes());
            assert_eq!(target, name.map(str::as_bytes), "{file} {try_files:?}");
        }
    }
}
