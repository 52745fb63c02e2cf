//! Looks for what a name comes to: its candidates, one after the other, each opened beneath the root.

use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::candidate::{Candidate, Pattern};
use crate::one_path::canonical;
use crate::plan::Plan;
use crate::resolve::Shape;

/// What was found.
pub(crate) enum Found {
    /// A file, whose name is in the buffer.
    File {
        opened: Opened,
        /// Whether its name follows from the path; else it is sent for others too.
        is_of_path: bool,
    },
    /// A folder that was asked for without a slash at its end.
    Folder,
    /// A folder without an index, which may be listed.
    List(Opened),
    /// The list of candidates ends so.
    Status(u16),
    Nothing,
}

/// Where is looked, and for what.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) root: &'a Root,
    pub(crate) plan: &'a Plan,
}

impl Search<'_> {
    /// Looks for a name; what it has found, or an error is about, is in `file`. It opens each candidate once at most, and the names of an index for each of those that is a folder.
    ///
    /// # Errors
    /// Where something is there that can't be opened. What comes behind it isn't looked at: it was meant for what isn't there.
    pub(crate) fn find(self, name: &[u8], shape: Shape, file: &mut Vec<u8>) -> Result<Found, OpenError> {
        let mut is_folder = None;
        for candidate in &self.plan.candidates.each {
            let found = match candidate {
                Candidate::Itself => self.itself(name, shape, &mut is_folder, file)?,
                Candidate::Folder if shape == Shape::Directory => self.index(name, file)?,
                Candidate::Folder => self.without_slash(name, is_folder, file)?,
                Candidate::Named(pattern) => self.named(pattern, name, shape, file)?,
                Candidate::Status(status) => Some(Found::Status(*status)),
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(Found::Nothing)
    }

    /// Whether one path alone leads to the file that was found for another: the path's name, if it is another than that of the request.
    ///
    /// It is held that this path is answered with this very file. So no redirect leads to another file, or to another redirect.
    pub(crate) fn canonical<'b>(
        self,
        name: &[u8],
        file: &'b [u8],
        other: &mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, OpenError> {
        let canonical = canonical(file, &self.plan.candidates.index);
        if canonical == name {
            return Ok(None);
        }
        let shape = if matches!(canonical, [] | [.., b'/']) { Shape::Directory } else { Shape::File };
        let found = self.find(canonical, shape, other)?;
        Ok((matches!(found, Found::File { .. }) && other == file).then_some(canonical))
    }

    /// Whether a file is the page of this name, which has no extension, and has no other path.
    fn is_page(self, name: &[u8], file: &[u8]) -> bool {
        file != name && canonical(file, &self.plan.candidates.index) == name
    }

    /// Whether a page, which has no extension, has the name that was asked for but for the slash at its end. For names of folders that are nothing.
    pub(crate) fn page_behind_slash(
        self,
        name: &[u8],
        shape: Shape,
        file: &mut Vec<u8>,
    ) -> Result<bool, OpenError> {
        let Some(page) =
            name.strip_suffix(b"/").filter(|_| self.plan.clean_urls && shape == Shape::Directory)
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
        // A slash at the end asks for a folder.
        if shape == Shape::Directory {
            return Ok(None);
        }
        let opened = self.open_as(name, file)?;
        *is_folder = Some(opened.as_ref().is_some_and(|opened| opened.kind == Kind::Directory));
        Ok(opened.and_then(|opened| file_found(opened, true)))
    }

    fn without_slash(
        self,
        name: &[u8],
        is_folder: Option<bool>,
        file: &mut Vec<u8>,
    ) -> Result<Option<Found>, OpenError> {
        let is_folder = match is_folder {
            Some(known) => known,
            None => self.open_as(name, file)?.is_some_and(|opened| opened.kind == Kind::Directory),
        };
        Ok(is_folder.then_some(Found::Folder))
    }

    /// The index of a folder, or the folder.
    fn index(self, name: &[u8], file: &mut Vec<u8>) -> Result<Option<Found>, OpenError> {
        for index in &self.plan.candidates.index {
            file.clear();
            file.extend_from_slice(name);
            file.extend_from_slice(index);
            if let Some(found) = self.open(file)?.and_then(|opened| file_found(opened, true)) {
                return Ok(Some(found));
            }
        }
        if !self.plan.listing {
            return Ok(None);
        }
        let folder = self.open_as(name, file)?.filter(|opened| opened.kind == Kind::Directory);
        Ok(folder.map(Found::List))
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
        let found = self.open(file)?.and_then(|opened| file_found(opened, pattern.is_of_path()));
        // Relative links in an index hold only where the path ends with a slash.
        Ok(found.map(|found| if pattern.is_index && shape == Shape::File { Found::Folder } else { found }))
    }

    /// The same as [`open`](Self::open), with the name in the buffer.
    fn open_as(self, name: &[u8], file: &mut Vec<u8>) -> Result<Option<Opened>, OpenError> {
        file.clear();
        file.extend_from_slice(name);
        self.open(name)
    }

    /// What has this name; `None` where nothing has.
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

fn file_found(opened: Opened, is_of_path: bool) -> Option<Found> {
    (opened.kind == Kind::File).then_some(Found::File { opened, is_of_path })
}
