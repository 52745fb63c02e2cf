//! Searches for the file of a name by opening its candidates beneath the root, in order.

use shearwater_io::fs::{Kind, OpenError, Opened};

use crate::disk::Disk;
use crate::resolve::candidate::{Candidate, Candidates, NamePattern};
use crate::resolve::path::Shape;

/// Result of a search.
pub(crate) enum SearchResult {
    /// A file; its name is in the buffer.
    File {
        opened: Opened,
        /// False for fixed files, which are sent for other paths too.
        depends_on_path: bool,
    },
    /// A folder that was requested without a trailing slash.
    Folder,
    /// A folder without an index, to be listed.
    Listing(Opened),
    /// The status at the end of the candidates.
    Status(u16),
    Nothing,
}

/// A search in a folder.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) disk: Disk<'a>,
    pub(crate) candidates: &'a Candidates,
}

impl Search<'_> {
    /// Searches for a name. Writes the name of the file that was found, or that the error is about, to `file`.
    ///
    /// Opens each candidate at most once, and for each folder candidate the names of its index.
    ///
    /// # Errors
    /// If a candidate exists but can't be opened. Later candidates aren't tried: they are meant for missing files.
    pub(crate) fn find(
        self,
        name: &[u8],
        shape: Shape,
        file: &mut Vec<u8>,
    ) -> Result<SearchResult, OpenError> {
        let mut is_folder = None;
        for candidate in &self.candidates.each {
            let found = match (candidate, shape) {
                // A trailing slash requests a folder.
                (Candidate::Itself, Shape::Directory) => None,
                (Candidate::Itself, Shape::File) => {
                    name.clone_into(file);
                    let opened = self.open(file)?;
                    is_folder = Some(is_directory(opened.as_ref()));
                    file_found(opened, true)
                }
                (Candidate::Folder, Shape::Directory) => self.index(name, file)?,
                (Candidate::Folder, Shape::File) => {
                    let is_folder = match is_folder {
                        Some(known) => known,
                        None => {
                            name.clone_into(file);
                            is_directory(self.open(file)?.as_ref())
                        }
                    };
                    is_folder.then_some(SearchResult::Folder)
                }
                (Candidate::Named(pattern), _) => self.named(pattern, name, shape, file)?,
                (Candidate::Status(status), _) => Some(SearchResult::Status(*status)),
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(SearchResult::Nothing)
    }

    /// Returns the canonical name of a file that was found by another name.
    ///
    /// A request for this name gets the same file, so a redirect never leads to another file or another redirect.
    pub(crate) fn canonical<'b>(
        self,
        name: &[u8],
        file: &'b [u8],
        other: &mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, OpenError> {
        let canonical = self.candidates.canonical(file);
        if canonical == name {
            return Ok(None);
        }
        let found = self.find(canonical, Shape::of(canonical), other)?;
        Ok((matches!(found, SearchResult::File { .. }) && other == file).then_some(canonical))
    }

    /// Returns a missing folder's name without its trailing slash, if that is the canonical name of a page.
    pub(crate) fn page_without_slash<'b>(
        self,
        name: &'b [u8],
        file: &mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, OpenError> {
        let Some(page) = name.strip_suffix(b"/").filter(|_| self.candidates.clean_urls) else {
            return Ok(None);
        };
        let found = self.find(page, Shape::File, file)?;
        let is_page = matches!(found, SearchResult::File { .. }) && file[..] != *page;
        Ok((is_page && self.candidates.canonical(file) == page).then_some(page))
    }

    /// Returns a folder's index, or the folder if it can be listed.
    fn index(self, name: &[u8], file: &mut Vec<u8>) -> Result<Option<SearchResult>, OpenError> {
        for index in &self.candidates.index {
            name.clone_into(file);
            file.extend_from_slice(index);
            if let Some(found) = file_found(self.open(file)?, true) {
                return Ok(Some(found));
            }
        }
        if !self.candidates.listing {
            return Ok(None);
        }
        name.clone_into(file);
        let folder = self.open(file)?.filter(|opened| opened.kind == Kind::Directory);
        Ok(folder.map(SearchResult::Listing))
    }

    fn named(
        self,
        pattern: &NamePattern,
        name: &[u8],
        shape: Shape,
        file: &mut Vec<u8>,
    ) -> Result<Option<SearchResult>, OpenError> {
        if !pattern.write(name, shape, file) {
            return Ok(None);
        }
        // Relative links in an index need a trailing slash in the path.
        let is_without_slash = pattern.is_index && shape == Shape::File;
        let found = file_found(self.open(file)?, pattern.after.is_some());
        Ok(found.map(|found| if is_without_slash { SearchResult::Folder } else { found }))
    }

    /// Opens a file or folder. Returns `None` if there is none.
    fn open(self, name: &[u8]) -> Result<Option<Opened>, OpenError> {
        match self.disk.open(name) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether an error means that there is no such file.
pub(crate) fn is_missing(error: &OpenError) -> bool {
    matches!(error, OpenError::NotFound | OpenError::NameTooLong | OpenError::TooManyLinks | OpenError::Link)
}

fn is_directory(opened: Option<&Opened>) -> bool {
    opened.is_some_and(|opened| opened.kind == Kind::Directory)
}

fn file_found(opened: Option<Opened>, depends_on_path: bool) -> Option<SearchResult> {
    let opened = opened.filter(|opened| opened.kind == Kind::File)?;
    Some(SearchResult::File { opened, depends_on_path })
}
