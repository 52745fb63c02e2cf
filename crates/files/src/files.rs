//! Answers requests with the files of a folder.

use std::cell::RefCell;
use std::fmt;

use shearwater::{Method, Request, Response, Service};

use crate::finder::Finder;

/// The methods that files have (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The files of a folder, as one worker serves them.
///
/// A file that is kept in memory is looked at twice a second, when it is asked for: a change shows within a second, and an answer is
/// wholly of one version.
///
/// A larger file is sent from its descriptor, with the length that it has when the response begins. Only a change that may have touched these
/// bytes ends the connection short of its `Content-Length`, by which the client knows: the file became shorter, or was written to at the same length.
/// Everything else leaves the response whole: the file grows (a log that is appended to), is replaced by a rename, moved or removed, gets another mode,
/// owner, name or date (`chmod`, `chown`, `ln`, `touch`). The last bytes of each piece are held back until a check has shown this.
///
/// The check goes by length and times. They don't tell a date that was set (`touch`) from a write, so a file whose download isn't over at once is watched
/// as well (Linux: inotify). A date that was set counts as a write for the files beyond [`WATCHES_MAX`](shearwater_io::limits::WATCHES_MAX) and where no
/// watch is available: on other systems, without `/proc`, beyond the user's limit of inotify instances. So does a date of modification that is set
/// alone (`touch -m`), which the system reports as a write. The check can't see everything:
///
/// - a file that is rewritten and longer afterwards (`cp` of a longer file over it). It passes for one that has grown, unless the bytes at the promised
///   end differ (the last 1 KiB, compared if the download isn't over at once and they are in memory);
/// - a `write` that had begun before the response: its times are set when it begins (ext4; XFS blocks readers meanwhile). A file that is half written
///   between two writes is sent half written: write it under another name and rename it;
/// - a `write` that is under way at the check or made by another machine (NFS), if mode, owner or both dates were set during the download;
/// - a write after which the date is set back to what it was, where there is no watch;
/// - stores through a shared mapping into pages that are dirty already;
/// - before Linux 6.13 or on other file systems than ext4, XFS, Btrfs and tmpfs: a change within the same tick (1 to 10 ms) as the one before the head;
/// - a first change of a file that was left alone for `LENT_AFTER_S`, where it comes when the last bytes are on their way but the client hasn't
///   got them all: the system sends the file's own pages (`sendfile`), and they change on the way. Before that time they are copied.
///
/// Disk work blocks the worker's thread, and with it the worker's other connections: opening files, reading their metadata, looking for siblings,
/// reading files into the cache, listing folders. Pieces of 128 KiB and more of a larger file that aren't in the page cache are read ahead by another
/// thread, where the file system supports it.
///
/// A file `NAME.br`, `NAME.zst` or `NAME.gz` beside `NAME` is sent in its place to clients that accept its coding, if neither of its times is before
/// that of `NAME` and it states no other length of its content ([`is_current_sibling`](shearwater_io::fs::is_current_sibling)).
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

    /// Answers `GET` and `HEAD` with a file, its folder's index, the parts of it that are asked for (`206`, `416`), a redirect to the folder's own
    /// name, what its conditions come to (`304`, `412`), or an error; `OPTIONS` with `Allow`; other methods with `405`,
    /// or with `501` if they aren't known.
    pub fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => self.finder.borrow_mut().respond(request, response),
            _ => {
                response.unhandled_method(request, ALLOW);
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

/// Mounted in an app, it answers with the files that the path behind the prefix names ([`App::mount`](shearwater::App::mount)).
impl Service for Files {
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        Self::respond(self, request, response);
    }
}
