//! Finds what a target names, in memory or beneath the root, and answers with it.

use std::rc::Rc;

use shearwater::{Known, Request, Response};
use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::accept_encoding;
use crate::cache::Cache;
use crate::held::Held;
use crate::limits::CacheLimits;
use crate::now::Now;
use crate::open_files::OpenFiles;
use crate::resolve::{self, Shape};
use crate::seen::Seen;
use crate::siblings::Siblings;
use crate::variant::Entry;
use crate::{redirect, refuse};

/// What a directory is answered with.
const INDEX: &[u8] = b"index.html";

/// One worker's way to the files of a folder.
pub(crate) struct Finder {
    /// The name at hand; kept for its memory.
    name: Vec<u8>,
    store: Store,
}

/// The folder, and what is kept of it.
struct Store {
    root: Root,
    cache: Cache,
    open_files: OpenFiles,
    seen: Seen,
}

impl Finder {
    pub(crate) fn new(root: Root, limits: CacheLimits) -> Self {
        let (cache, seen) = (Cache::new(limits), Seen::new(limits));
        Self { name: Vec::new(), store: Store { root, cache, open_files: OpenFiles::default(), seen } }
    }

    /// Answers `GET` and `HEAD`.
    pub(crate) fn respond(&mut self, request: &Request<'_>, response: &mut Response<'_>) {
        let Self { name, store } = self;
        let shape = match resolve::resolve(request.path(), name) {
            Ok(shape) => shape,
            Err(bad) => return refuse::path(bad, response),
        };
        if shape == Shape::Directory {
            name.extend_from_slice(INDEX);
        }
        let now = Now::of(request);
        let kept = store.cache.get(name);
        if let Some(held) = kept.as_ref().filter(|held| held.is_fresh(now)) {
            if !store.reply_sibling(held.siblings(), name, request, response) {
                held.reply(request, response);
            }
            return;
        }
        if kept.is_none() && store.reply_known(name, request, response) {
            return;
        }
        match store.root.open_beneath(name) {
            // The index itself is a directory: that is no page, and the target has its slash already.
            Ok(Opened { kind: Kind::Directory, .. }) if shape == Shape::Directory => {
                refuse::open(&OpenError::NotFound, response);
            }
            Ok(Opened { kind: Kind::Directory, .. }) => redirect::to_directory(request, response),
            Ok(opened) => store.reply_opened(kept, opened, name, request, response),
            Err(error) => {
                store.cache.remove(name);
                refuse::open(&error, response);
            }
        }
    }

    /// Answers with the file of this name under another answer's status; `false`, and nothing is answered, where there is none.
    pub(crate) fn respond_page(
        &mut self,
        file: &[u8],
        status: u16,
        now: Now,
        response: &mut Response<'_>,
    ) -> bool {
        let Self { name, store } = self;
        name.clear();
        name.extend_from_slice(file);
        let kept = store.cache.get(name);
        if let Some(held) = kept.as_ref().filter(|held| held.is_fresh(now)) {
            held.reply_page(status, response);
            return true;
        }
        let Ok(opened) = store.root.open_beneath(name) else { return false };
        if opened.kind != Kind::File {
            return false;
        }
        let siblings = store.siblings(&opened, name, now);
        let entry = Entry::plain(name, siblings);
        match store.hold(kept, &opened, entry, now) {
            Some(held) => held.reply_page(status, response),
            None => OpenFiles::reply_page(opened, entry, status, now, response),
        }
        true
    }
}

impl Store {
    /// Answers with a file that isn't in memory, if this turn has opened it, or with a sibling of it that was seen a moment ago.
    fn reply_known(
        &mut self,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let open = self.open_files.siblings(name);
        let known = open.or_else(|| self.seen.get(name, Now::of(request)));
        known.is_some_and(|siblings| self.reply_sibling(siblings, name, request, response))
            || self.open_files.reply(name, request, response)
    }

    /// Answers with a file that was opened just now, or with a sibling of it.
    fn reply_opened(
        &mut self,
        kept: Option<Rc<Held>>,
        opened: Opened,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let now = Now::of(request);
        let siblings = self.siblings(&opened, name, now);
        let held = self.hold(kept, &opened, Entry::plain(name, siblings), now);
        if self.reply_sibling(siblings, name, request, response) {
            return;
        }
        match held {
            Some(held) => held.reply(request, response),
            None => {
                let entry = Entry::plain(name, siblings);
                self.open_files.reply_opened(opened, entry, request, response);
            }
        }
    }

    /// The siblings of a file that was opened: looked for, or remembered where the file itself isn't.
    fn siblings(&mut self, opened: &Opened, name: &mut Vec<u8>, now: Now) -> Siblings {
        let is_held = self.cache.takes(opened.meta.len);
        if let Some(siblings) = self.seen.get(name, now).filter(|_| !is_held) {
            return siblings;
        }
        let siblings = Siblings::look(&self.root, name, &opened.meta);
        if !is_held {
            self.seen.note(name, now, siblings);
        }
        siblings
    }

    /// Answers with the sibling that the client likes best, if there is one. `name` is as before afterwards.
    fn reply_sibling(
        &mut self,
        siblings: Siblings,
        name: &mut Vec<u8>,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        if siblings.is_empty() {
            return false;
        }
        let accepted = request.head().all(Known::AcceptEncoding);
        let Some(coding) = accept_encoding::choose(accepted, siblings.codings()) else { return false };
        let len = name.len();
        name.extend_from_slice(coding.extension().as_bytes());
        name.push(0);
        let entry = Entry::coded(name, len, coding);
        let is_replied = self.reply_coded(entry, siblings, request, response);
        name.truncate(len);
        is_replied
    }

    /// Answers with a sibling, unless it is gone or has become older than the file.
    fn reply_coded(
        &mut self,
        entry: Entry<'_>,
        siblings: Siblings,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        let now = Now::of(request);
        let kept = self.cache.get(entry.key);
        let is_present = |held: &&Rc<Held>| held.is_fresh(now) && siblings.are_not_newer_than(held.meta());
        if let Some(held) = kept.as_ref().filter(is_present) {
            held.reply(request, response);
            return true;
        }
        if kept.is_none() && self.open_files.reply(entry.key, request, response) {
            return true;
        }
        match self.root.open_beneath(entry.path()) {
            Ok(opened) if siblings.admit(&opened) => {
                match self.hold(kept, &opened, entry, now) {
                    Some(held) => held.reply(request, response),
                    None => self.open_files.reply_opened(opened, entry, request, response),
                }
                true
            }
            _ => {
                self.cache.remove(entry.key);
                false
            }
        }
    }

    /// The present version of a file that may be kept in memory: the one that is, or read anew. `None` if it is to be sent
    /// from its file.
    fn hold(
        &mut self,
        kept: Option<Rc<Held>>,
        opened: &Opened,
        entry: Entry<'_>,
        now: Now,
    ) -> Option<Rc<Held>> {
        if let Some(held) = kept.filter(|held| held.is_of(opened, entry.variant, now)) {
            return Some(held);
        }
        let held = if self.cache.takes(opened.meta.len) {
            // One that can't be read now may be sent all the same, or fail there.
            Held::read(opened, entry, now).ok().flatten()
        } else {
            None
        };
        match &held {
            Some(held) => self.cache.insert(entry.key, Rc::clone(held)),
            None => self.cache.remove(entry.key),
        }
        held
    }
}
