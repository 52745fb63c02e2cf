//! Responds to requests with the files of a folder.

use std::cell::RefCell;
use std::fmt;

use shearwater::{Method, Request, Response, Service};

use crate::finder::Finder;

/// Methods that files support (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The files of a folder, served by one worker.
///
/// A cached file is checked for changes when it is requested, at most twice a second. So a change shows within a
/// second, and each response is of one version.
///
/// A larger file is sent from its descriptor, with the length that it has when the response begins. The connection ends
/// short of `Content-Length`, which the client detects, only if a change may have touched these bytes: the file became
/// shorter, or was written to without growing. All other changes leave the response whole: the file grows (a log), is
/// replaced by a rename, moved or removed, or gets another mode, owner, name or date (`chmod`, `chown`, `ln`, `touch`).
/// The last bytes of each piece are sent only after a check.
///
/// The check compares length and times. These can't distinguish a date that was set (`touch`) from a write, so a file
/// whose download takes longer is watched as well (Linux: inotify). A date that was set counts as a write for files
/// beyond [`WATCHES_MAX`](shearwater_io::limits::WATCHES_MAX) and where no watch is available: on other systems,
/// without `/proc`, beyond the user's limit of inotify instances. So does a modification date that is set alone (`touch
/// -m`), which the system reports as a write. The check misses:
///
/// - a file that is rewritten and longer afterwards (`cp` of a longer file over it). It passes for one that has grown,
///   unless the bytes at the promised end differ (the last 1 KiB, compared for longer downloads if they are in memory);
/// - a `write` that began before the response: its times are set when it begins (ext4; XFS blocks readers meanwhile). A
///   file is sent half written between two writes: write it under another name and rename it;
/// - a `write` in progress at the check or made by another machine (NFS), if mode, owner or both dates were set during
///   the download;
/// - a write after which the date is set back, where there is no watch;
/// - stores through a shared mapping into pages that are already dirty;
/// - before Linux 6.13 or on file systems other than ext4, XFS, Btrfs and tmpfs: a change within the same tick (1 to 10
///   ms) as the one before the head;
/// - the first change of a file after `SENDFILE_AFTER_S` without one, if it happens while the last bytes are in flight: the
///   system sends the file's own pages (`sendfile`), which change with the file. Before that time they are copied.
///
/// Disk work blocks the worker's thread and with it the worker's other connections: opening files, reading their
/// metadata, looking for siblings, reading files into the cache, listing folders. Pieces of 128 KiB and more that
/// aren't in the page cache are read ahead by another thread, where the file system supports it.
///
/// A sibling `NAME.br`, `NAME.zst` or `NAME.gz` is sent instead of `NAME` to clients that accept its coding. Neither of
/// its times may be before that of `NAME`, and it must not record another content length
/// ([`is_current_sibling`](shearwater_io::fs::is_current_sibling)).
pub struct Files {
    finder: RefCell<Finder>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder: RefCell::new(finder) }
    }

    /// Responds with the file at `path`, such as `/404.html`, as the page of this status.
    ///
    /// The file is sent whole, in the client's preferred coding, and without validators, ranges and `Cache-Control`.
    /// Path options don't apply: the file may be hidden, and is sent even if its own path would be redirected.
    ///
    /// Returns false and leaves the response unchanged if the file is missing or not readable. Earlier changes of the
    /// response are kept, so pass a fresh one.
    ///
    /// # Panics
    /// If `status` is not a final status, 200 to 599.
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

impl Service for Files {
    /// Responds with the file that the path names, after a mount's prefix ([`App::mount`](shearwater::App::mount)).
    ///
    /// `GET` and `HEAD` get a file, its folder's index, the requested parts (`206`, `416`), a redirect to the folder's
    /// path with a slash, the result of preconditions (`304`, `412`), or an error. `OPTIONS` gets `Allow`, other
    /// methods get `405` and unknown ones `501`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => self.finder.borrow_mut().respond(request, response),
            _ => {
                response.unhandled_method(request, ALLOW);
            }
        }
    }
}
