//! Files that are sent from their descriptor: open as long as the turn in which they were asked for.

use std::rc::{Rc, Weak};

use shearwater::{FileSlice, Item, Prebuilt, Request, Response};
use shearwater_io::fs::Opened;

use crate::limits::OPEN_FILES_MAX;
use crate::version::Version;

/// The files that were opened last, at most `OPEN_FILES_MAX`. The engine holds their answers until the turn ends, this table doesn't:
/// so no file is open between turns but those that are being sent.
#[derive(Default)]
pub(crate) struct OpenFiles {
    files: Vec<OpenFile>,
}

struct OpenFile {
    name: Vec<u8>,
    version: Version,
    content: Weak<Prebuilt>,
}

impl OpenFiles {
    /// Answers with the file of this name, if this turn has opened it.
    pub(crate) fn reply(&self, name: &[u8], request: &Request<'_>, response: &mut Response<'_>) -> bool {
        let Some(file) = self.files.iter().find(|file| file.name == name) else { return false };
        let Some(content) = file.content.upgrade() else { return false };
        file.version.reply(&content, request, response);
        true
    }

    /// Answers with a file that was opened just now.
    pub(crate) fn reply_opened(
        &mut self,
        opened: Opened,
        name: &[u8],
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let slice = FileSlice { file: Rc::new(opened.file), offset: 0, len: opened.meta.len };
        let (version, content) = Version::new(&opened.meta, name, request.unix_seconds(), Item::File(slice));
        let content = Rc::new(content);
        version.reply(&content, request, response);
        self.files.retain(|file| file.content.strong_count() > 0 && file.name != name);
        if self.files.len() < OPEN_FILES_MAX {
            self.files.push(OpenFile { name: name.to_vec(), version, content: Rc::downgrade(&content) });
        }
    }
}
