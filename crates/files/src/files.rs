//! Answers requests with the files of a folder.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use shearwater::{Method, Request, Response};
use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::cache::Cache;
use crate::held::{Held, Now};
use crate::limits::CacheLimits;
use crate::open_files::OpenFiles;
use crate::redirect;
use crate::resolve::{self, BadPath, Shape};

/// What a directory is answered with.
const INDEX: &[u8] = b"index.html";

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
        Files {
            root: self.root.clone(),
            state: RefCell::new(State {
                name: Vec::new(),
                cache: Cache::new(cache),
                open_files: OpenFiles::default(),
            }),
        }
    }
}

/// The files of a folder, as one worker serves them.
///
/// A file that is kept in memory is looked at twice a second, when it is asked for: a change shows within a second, and an answer is
/// wholly of one version.
pub struct Files {
    root: Root,
    state: RefCell<State>,
}

struct State {
    /// The name at hand; kept for its memory.
    name: Vec<u8>,
    cache: Cache,
    open_files: OpenFiles,
}

impl Files {
    /// Answers `GET` and `HEAD` with a file, its folder's index, a redirect to the folder's own name, what its
    /// conditions come to (`304`, `412`), or an error; `OPTIONS` with `Allow`; other methods with `405`.
    pub fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.method() {
            Method::Get | Method::Head => self.respond_file(request, response),
            Method::Options => {
                response.status(204).field("Allow", ALLOW);
            }
            _ => {
                response.status(405).field("Allow", ALLOW).text("Method Not Allowed\n");
            }
        }
    }

    fn respond_file(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let State { name, cache, open_files } = &mut *self.state.borrow_mut();
        let shape = match resolve::resolve(request.path(), name) {
            Ok(shape) => shape,
            Err(bad) => return refuse_path(bad, response),
        };
        if shape == Shape::Directory {
            name.extend_from_slice(INDEX);
        }
        let now = Now::of(request);
        let kept = cache.get(name);
        if let Some(held) = kept.as_ref().filter(|held| held.is_fresh(now)) {
            return held.reply(request, response);
        }
        if kept.is_none() && open_files.reply(name, request, response) {
            return;
        }
        match self.root.open_beneath(name) {
            // The index itself is a directory: that is no page, and the target has its slash already.
            Ok(Opened { kind: Kind::Directory, .. }) if shape == Shape::Directory => {
                refuse_open(&OpenError::NotFound, response);
            }
            Ok(Opened { kind: Kind::Directory, .. }) => redirect::to_directory(request, response),
            Ok(opened) => match hold(kept, &opened, name, cache, now) {
                Some(held) => held.reply(request, response),
                None => open_files.reply_opened(opened, name, request, response),
            },
            Err(error) => {
                cache.remove(name);
                refuse_open(&error, response);
            }
        }
    }
}

/// The present version of a file that may be kept in memory: the one that is, or read anew. `None` if it is to be sent from
/// its file.
fn hold(
    kept: Option<Rc<Held>>,
    opened: &Opened,
    name: &[u8],
    cache: &mut Cache,
    now: Now,
) -> Option<Rc<Held>> {
    if let Some(held) = kept.filter(|held| held.is_of(opened, now)) {
        return Some(held);
    }
    let held = if cache.takes(opened.meta.len) {
        // One that can't be read now may be sent all the same, or fail there.
        Held::read(opened, name, now).ok().flatten()
    } else {
        None
    };
    match &held {
        Some(held) => cache.insert(name, Rc::clone(held)),
        None => cache.remove(name),
    }
    held
}

fn refuse_path(bad: BadPath, response: &mut Response<'_>) {
    match bad {
        BadPath::Escape => {
            response.status(400).text("A percent sign is followed by two hexadecimal digits.\n")
        }
        BadPath::Dots => response.status(400).text("A path with . or .. in it is not resolved here.\n"),
        BadPath::NoName => response.status(404).text("Not Found\n"),
    };
}

fn refuse_open(error: &OpenError, response: &mut Response<'_>) {
    match error {
        OpenError::NotFound | OpenError::NameTooLong | OpenError::TooManyLinks => {
            response.status(404).text("Not Found\n")
        }
        OpenError::Forbidden | OpenError::Escapes | OpenError::NotPlain => {
            response.status(403).text("Forbidden\n")
        }
        OpenError::Descriptors => {
            response.status(503).field("Retry-After", "1").text("Too many files are open. Try again.\n")
        }
        OpenError::Other(_) => response.status(500).text("The file can't be read.\n"),
    };
}
