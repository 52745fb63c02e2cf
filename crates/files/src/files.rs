//! A folder as a service: responds at once, or once another thread has read what it needs.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use shearwater::engine::Request;
use shearwater::{Method, Response, Service};

use crate::disk::work::WaitingRequest;
use crate::finder::Finder;
use crate::finder::page::Page;
use crate::limits::{DISK_JOBS_PER_REQUEST_MAX, DISK_WAIT_S_MAX};

/// Methods that files support (RFC 9110 section 10.2.1).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// Longest wait for the disk.
const DISK_WAIT_MAX: Duration = Duration::from_secs(DISK_WAIT_S_MAX);

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
/// # Disks
///
/// A worker doesn't wait for a disk: it opens and reads what is in the kernel's caches, and leaves the rest to one of the
/// folder's threads ([`DISK_THREADS_MAX`](crate::limits::DISK_THREADS_MAX)). Folders are always read there. Meanwhile the
/// response is [deferred](Response::defer). A request that the disk delays by more than
/// [`DISK_WAIT_S_MAX`](crate::limits::DISK_WAIT_S_MAX) gets a `503`. A response that can't be deferred, such as that of a
/// [`Call`](shearwater::engine::Call), makes the worker wait.
///
/// The worker still waits before Linux 5.12 and on other systems; where the page cache can't be asked (`EOPNOTSUPP`:
/// overlayfs), for contents of a file whose name is cached; below a local folder, for file systems of a server that are
/// mounted there; for less than 128 KiB of a file that isn't cached by the server itself, if its pages were evicted
/// since it was opened last; for the `stat` of a cached file or a sibling, if the kernel has evicted its name within ten
/// seconds, or that of a missing sibling after a change of the directory. Pieces of 128 KiB and more that aren't in the
/// page cache are read ahead by other threads.
///
/// A sibling `NAME.br`, `NAME.zst` or `NAME.gz` is sent instead of `NAME` to clients that accept its coding. Neither of
/// its times may be before that of `NAME`, it must begin as its coding does and must not record another content length
/// ([`is_current_sibling`](shearwater_io::fs::is_current_sibling)).
///
/// Clones share their caches.
#[derive(Clone)]
pub struct Files {
    finder: Rc<RefCell<Finder>>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder: Rc::new(RefCell::new(finder)) }
    }

    /// Responds with the file at `path`, such as `/404.html`, as the page of this status.
    ///
    /// The file is sent whole, in the client's preferred coding, and without validators, ranges and `Cache-Control`.
    /// Path options don't apply: the file may be hidden, and is sent even if its own path would be redirected.
    ///
    /// Leaves the response to `otherwise` if the file is missing or not readable. Earlier changes of the response are
    /// kept, so pass a fresh one. The response is [deferred](Response::defer) if the disk must be waited for.
    ///
    /// # Panics
    /// If `status` is not a final status, 200 to 599.
    pub fn respond_page(
        &self,
        path: &str,
        status: u16,
        request: &Request<'_>,
        response: &mut Response<'_>,
        otherwise: impl FnOnce(&Request<'_>, &mut Response<'_>) + 'static,
    ) {
        let name = path.strip_prefix('/').unwrap_or(path).as_bytes();
        let page = self.finder.borrow_mut().respond_page(name, status, None, request, response);
        match page {
            Page::Sent => {}
            Page::Missing => otherwise(request, response),
            Page::Waits(waiting) => {
                let (finder, name) = (Rc::clone(&self.finder), name.to_vec());
                response.defer(request, |mut call| async move {
                    let mut page = Page::Waits(waiting);
                    for _ in 0..DISK_JOBS_PER_REQUEST_MAX {
                        let Page::Waits(waiting) = page else { break };
                        let found = waiting.found(call.sleep(DISK_WAIT_MAX)).await;
                        let (request, mut response) = call.parts();
                        let mut finder = finder.borrow_mut();
                        page = finder.respond_page(&name, status, Some(found), &request, &mut response);
                    }
                    if !matches!(page, Page::Sent) {
                        let (request, mut response) = call.parts();
                        otherwise(&request, &mut response);
                    }
                });
            }
        }
    }
}

impl Service for Files {
    fn has_guards(&self) -> bool {
        false
    }

    /// Responds with the file that the path names, after a mount's prefix ([`App::mount`](shearwater::App::mount)).
    ///
    /// `GET` and `HEAD` get a file, its folder's index, the requested parts (`206`, `416`), a redirect to the folder's
    /// path with a slash, the result of preconditions (`304`, `412`), or an error. `OPTIONS` gets `Allow`, other
    /// methods get `405` and unknown ones `501`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => {
                let waiting = self.finder.borrow_mut().respond(request, response);
                if let Some(waiting) = waiting {
                    respond_later(Rc::clone(&self.finder), waiting, request, response);
                }
            }
            _ => {
                response.unhandled_method(request, ALLOW);
            }
        }
    }
}

/// Defers the response until another thread has what it needs.
#[cold]
fn respond_later(
    finder: Rc<RefCell<Finder>>,
    waiting: WaitingRequest,
    request: &Request<'_>,
    response: &mut Response<'_>,
) {
    response.defer(request, |mut call| async move {
        let mut waiting = Some(waiting);
        for left in (0..DISK_JOBS_PER_REQUEST_MAX).rev() {
            let Some(job) = waiting else { break };
            let found = job.found(call.sleep(DISK_WAIT_MAX)).await;
            let (request, mut response) = call.parts();
            waiting = finder.borrow_mut().respond_found(found, left == 0, &request, &mut response);
        }
    });
}
