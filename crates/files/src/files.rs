//! Answers requests with the files of a folder.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use shearwater::{Method, Request, Response};
use shearwater_io::fs::Root;

use crate::file_cache::FileCache;
use crate::finder::Finder;
use crate::limits::CacheLimits;
use crate::one_path;
use crate::options::{FolderError, FolderOptions, Hidden};
use crate::plan::Plan;
use crate::redirect;
use crate::resolve::resolve;

/// The methods that files have (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// An open folder, to be shared by the workers.
///
/// Nothing outside of it is ever sent: names are resolved by the kernel beneath it, symbolic links that lead out are
/// refused, and so are devices, pipes and sockets. What its options name (an index, a fallback, a page for errors) lies in it too.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Root,
    plan: Arc<Plan>,
}

impl Folder {
    /// Opens the folder, to be served as usual. It stays this folder even if it is renamed later.
    ///
    /// # Errors
    /// Where there is no folder, or it may not be read.
    ///
    /// # Panics
    /// Never: the usual options mean something.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::open_with(path, &FolderOptions::default()) {
            Ok(folder) => Ok(folder),
            Err(FolderError::Open(error)) => Err(error),
            Err(FolderError::Option(bad)) => unreachable!("a usual option is refused: {bad}"),
        }
    }

    /// Opens the folder, to be served with these options.
    ///
    /// # Errors
    /// Where an option means nothing, there is no folder, or it may not be read.
    pub fn open_with(path: &Path, options: &FolderOptions) -> Result<Self, FolderError> {
        let plan = Plan::new(options).map_err(FolderError::Option)?;
        let root = Root::open(path).map_err(FolderError::Open)?.with_links(options.symlinks);
        // A folder that may not be searched can be opened, but nothing in it.
        std::fs::metadata(path.join(".")).map_err(FolderError::Open)?;
        Ok(Self { root, plan: Arc::new(plan) })
    }

    /// The path that a file at this path is redirected to wherever it is there; `None` where it is none, or it depends on what else there is.
    /// No file is looked at.
    #[must_use]
    pub fn leads_to(&self, path: &str) -> Option<String> {
        let mut name = Vec::new();
        let resolved = resolve(path, &mut name).ok()?;
        if resolved.is_hidden && self.plan.hidden == Hidden::Deny {
            return None;
        }
        one_path::leads_to(&name, &self.plan).map(redirect::encoded)
    }

    /// The folder's files, for one worker, small ones kept in memory.
    #[must_use]
    pub fn files(&self) -> Files {
        self.files_with(CacheLimits::default())
    }

    /// The folder's files, for one worker, with so much kept in memory.
    #[must_use]
    pub fn files_with(&self, cache: CacheLimits) -> Files {
        self.files_in(&FileCache::new(cache))
    }

    /// The folder's files, for the worker that this cache is of, which its other folders share.
    #[must_use]
    pub fn files_in(&self, cache: &FileCache) -> Files {
        let (root, plan) = (self.root.clone(), Arc::clone(&self.plan));
        Files { finder: RefCell::new(Finder::new(root, plan, cache.next())) }
    }
}

/// The files of a folder, as one worker serves them.
///
/// A file that is kept in memory is looked at twice a second, when it is asked for: a change shows within a second, and an answer is
/// wholly of one version.
///
/// A file that is larger is sent from its descriptor. One that is replaced by a rename or removed meanwhile is sent to its end as it was. One that is
/// cut or rewritten in place is not: the last bytes of each piece are held back until a look has shown that length and times are those that the
/// answer's head was made from; else the connection ends short of its `Content-Length`, which tells the client. That look can't see
/// everything:
///
/// - what one `write` that had begun before the head was made was still about to write: its times are set when it begins (ext4; XFS lets nobody
///   read meanwhile). And what is half written between two of them is the file, as it is then: write it under another name and rename it;
/// - what is stored through a shared mapping into pages that are dirty already;
/// - before Linux 6.13 or on other file systems than ext4, XFS, Btrfs and tmpfs: a change within the same tick (1 to 10 ms) as the one before the head;
/// - a first change of a file that was left alone for `LENT_AFTER_S`, where it comes when the last bytes are on their way but the client hasn't
///   got them all: the system sends the file's own pages (`sendfile`), and they change on the way. Before that time they are copied.
///
/// Where `NAME.br`, `NAME.zst` or `NAME.gz` lies beside `NAME` and isn't older, it is sent in its place to clients that accept its coding.
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

    /// Answers with the file at `path`, such as `/404.html`, as the page of this status: whatever was asked for, whole, in the coding that the
    /// client likes best, and without what is said of a file that was asked for (validators, ranges, `Cache-Control`). Options that are about paths
    /// don't count: the file may be a hidden one, and it is sent even where its own path would be redirected.
    ///
    /// False where it can't be sent, since it isn't there or may not be read; then nothing was said. What the response was given
    /// before stays: hand in one that is as it began.
    ///
    /// # Panics
    /// If it isn't a final status, 200 to 599.
    pub fn respond_page(
        &self,
        path: &str,
        status: u16,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let name = path.strip_prefix('/').unwrap_or(path).as_bytes();
        self.finder.borrow_mut().respond_page(name, status, request, response)
    }
}
