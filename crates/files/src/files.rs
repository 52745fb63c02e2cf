//! Answers requests with the files of a folder.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use shearwater::{Method, Request, Response};
use shearwater_io::fs::Root;

use crate::finder::Finder;
use crate::limits::CacheLimits;
use crate::now::Now;

/// The methods that files have (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// An open folder, to be shared by the workers.
///
/// Nothing outside of it is ever sent: names are resolved by the kernel beneath it, symbolic links that lead out are
/// refused, and so are devices, pipes and sockets.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Root,
}

impl Folder {
    /// Opens the folder. It stays this folder even if it is renamed later.
    ///
    /// # Errors
    /// Where there is no folder, or it may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = Root::open(path)?;
        // A folder that may not be searched can be opened, but nothing in it.
        std::fs::metadata(path.join("."))?;
        Ok(Self { root })
    }

    /// The folder's files, for one worker, small ones kept in memory.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files_with(CacheLimits::default())
    }

    /// The folder's files, for one worker, with so much kept in memory.
    #[must_use]
    pub fn files_with(&self, cache: CacheLimits) -> Files {
        Files { finder: RefCell::new(Finder::new(self.root.clone(), cache)) }
    }
}

/// The files of a folder, as one worker serves them.
///
/// A file that is kept in memory is looked at twice a second, when it is asked for: a change shows within a second, and an answer is
/// wholly of one version.
///
/// Where `NAME.br`, `NAME.zst` or `NAME.gz` lies beside `NAME` and isn't older, it is sent in its place to clients that accept its coding. As with any
/// file, what is half written is sent half: write it under another name and rename it.
pub struct Files {
    finder: RefCell<Finder>,
}

impl Files {
    /// Answers `GET` and `HEAD` with a file, its folder's index, the parts of it that are asked for (`206`, `416`), a redirect to the folder's own
    /// name, what its conditions come to (`304`, `412`), or an error; `OPTIONS` with `Allow`; other methods with `405`.
    pub fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => self.finder.borrow_mut().respond(request, response),
            Method::Options => {
                response.status(204).field("Allow", ALLOW);
            }
            _ => {
                response.status(405).field("Allow", ALLOW).text("Method Not Allowed\n");
            }
        }
    }

    /// Answers with the content of the file at `path`, such as `/404.html` (nothing in it is decoded), under this status and whatever
    /// the method: the page of an error. `false`, and `response` is as before, where there is no such file or it can't be read.
    ///
    /// # Panics
    /// If the status isn't a final one, 200 to 599.
    pub fn respond_page(
        &self,
        path: &str,
        status: u16,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let name = path.strip_prefix('/').unwrap_or(path).as_bytes();
        self.finder.borrow_mut().respond_page(name, status, Now::of(request), response)
    }
}
