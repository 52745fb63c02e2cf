//! Searches for the file of a name by opening its candidates beneath the root, in order.

use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::candidate::{Candidate, Pattern};
use crate::canonical::canonical;
use crate::resolve::Shape;
use crate::settings::Settings;

/// Result of a search.
pub(crate) enum Found {
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
    pub(crate) root: &'a Root,
    pub(crate) settings: &'a Settings,
}

impl Search<'_> {
    /// Searches for a name. Writes the name of the file that was found, or that the error is about, to `file`.
    ///
    /// Opens each candidate at most once, and for each folder candidate the names of its index.
    ///
    /// # Errors
    /// If a candidate exists but can't be opened. Later candidates aren't tried: they are meant for missing files.
    pub(crate) fn find(self, name: &[u8], shape: Shape, file: &mut Vec<u8>) -> Result<Found, OpenError> {
        let mut is_folder = None;
        for candidate in &self.settings.candidates.each {
            let found = match candidate {
                Candidate::Itself => self.itself(name, shape, &mut is_folder, file)?,
                Candidate::Folder if shape == Shape::Directory => self.index(name, file)?,
                Candidate::Folder => self.folder_without_slash(name, is_folder, file)?,
                Candidate::Named(pattern) => self.named(pattern, name, shape, file)?,
                Candidate::Status(status) => Some(Found::Status(*status)),
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(Found::Nothing)
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
        let canonical = canonical(file, &self.settings.candidates.index);
        if canonical == name {
            return Ok(None);
        }
        let shape = if matches!(canonical, [] | [.., b'/']) { Shape::Directory } else { Shape::File };
        let found = self.find(canonical, shape, other)?;
        Ok((matches!(found, Found::File { .. }) && other == file).then_some(canonical))
    }

    /// Returns whether a file is the page of this name: the canonical name of `name.html`.
    fn is_page(self, name: &[u8], file: &[u8]) -> bool {
        file != name && canonical(file, &self.settings.candidates.index) == name
    }

    /// Returns whether a missing folder's name, without its trailing slash, is the name of a page.
    pub(crate) fn page_without_slash(
        self,
        name: &[u8],
        shape: Shape,
        file: &mut Vec<u8>,
    ) -> Result<bool, OpenError> {
        let Some(page) =
            name.strip_suffix(b"/").filter(|_| self.settings.clean_urls && shape == Shape::Directory)
        else {
            return Ok(false);
        };
        let found = self.find(page, Shape::File, file)?;
        Ok(matches!(found, Found::File { .. }) && self.is_page(page, file))
    }

    fn itself(
        self,
        name: &[u8],
        shape: Shape,
        is_folder: &mut Option<bool>,
        file: &mut Vec<u8>,
    ) -> Result<Option<Found>, OpenError> {
        // A trailing slash requests a folder.
        if shape == Shape::Directory {
            return Ok(None);
        }
        let opened = self.open_into(name, file)?;
        *is_folder = Some(opened.as_ref().is_some_and(|opened| opened.kind == Kind::Directory));
        Ok(opened.and_then(|opened| file_found(opened, true)))
    }

    fn folder_without_slash(
        self,
        name: &[u8],
        is_folder: Option<bool>,
        file: &mut Vec<u8>,
    ) -> Result<Option<Found>, OpenError> {
        let is_folder = match is_folder {
            Some(known) => known,
            None => self.open_into(name, file)?.is_some_and(|opened| opened.kind == Kind::Directory),
        };
        Ok(is_folder.then_some(Found::Folder))
    }

    /// Returns a folder's index, or the folder if it can be listed.
    fn index(self, name: &[u8], file: &mut Vec<u8>) -> Result<Option<Found>, OpenError> {
        for index in &self.settings.candidates.index {
            file.clear();
            file.extend_from_slice(name);
            file.extend_from_slice(index);
            if let Some(found) = self.open(file)?.and_then(|opened| file_found(opened, true)) {
                return Ok(Some(found));
            }
        }
        if !self.settings.listing {
            return Ok(None);
        }
        let folder = self.open_into(name, file)?.filter(|opened| opened.kind == Kind::Directory);
        Ok(folder.map(Found::Listing))
    }

    fn named(
        self,
        pattern: &Pattern,
        name: &[u8],
        shape: Shape,
        file: &mut Vec<u8>,
    ) -> Result<Option<Found>, OpenError> {
        if !pattern.write(name, shape, file) {
            return Ok(None);
        }
        let found = self.open(file)?.and_then(|opened| file_found(opened, pattern.depends_on_path()));
        // Relative links in an index need a trailing slash in the path.
        Ok(found.map(|found| if pattern.is_index && shape == Shape::File { Found::Folder } else { found }))
    }

    /// Calls [`open`](Self::open) and copies the name to the buffer.
    fn open_into(self, name: &[u8], file: &mut Vec<u8>) -> Result<Option<Opened>, OpenError> {
        file.clear();
        file.extend_from_slice(name);
        self.open(name)
    }

    /// Opens a file or folder. Returns `None` if there is none.
    fn open(self, name: &[u8]) -> Result<Option<Opened>, OpenError> {
        match self.root.open_beneath(name) {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::NotFound | OpenError::NameTooLong | OpenError::TooManyLinks | OpenError::Link) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn file_found(opened: Opened, depends_on_path: bool) -> Option<Found> {
    (opened.kind == Kind::File).then_some(Found::File { opened, depends_on_path })
}
