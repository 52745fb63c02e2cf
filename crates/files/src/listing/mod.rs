//! Lists of folders, as HTML for people or JSON for programs.
//!
//! Folders are read on another thread. The number of names read and of entries per page is bounded, and names and pages
//! are cached for 500 ms.

pub(crate) mod names;
mod render;
pub(crate) mod rows;
mod text;

use std::rc::Rc;
use std::sync::Arc;

use shearwater::engine::{FieldLines, KnownField, Request, Shared};

use shearwater::Response;

use crate::cache::table::{Evictable, Section};
use crate::conditional::preconditions::{self, PreconditionResult};
use crate::conditional::validators::Validators;
use crate::disk::load::LoadedList;
use crate::limits::LISTING_ENTRIES_MAX;
use crate::listing::names::FolderNames;
use crate::listing::rows::ListOrder;
use crate::negotiation::media_type_weight;
use crate::now::Now;

/// One worker's lists of a folder and its subfolders.
pub(crate) struct Listings {
    kept: Section<ListEntry>,
    /// Reused buffer for keys.
    key: Vec<u8>,
}

/// Format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListFormat {
    Html,
    Json,
}

/// A list, ready to be sent.
pub(crate) struct Listing {
    media_type: &'static str,
    validators: Validators,
    /// Headers of all responses.
    about: FieldLines,
    body: Shared,
    /// Time at which the names were read, by the worker's clock.
    made_ms: u64,
}

/// An entry of a worker's table of lists.
pub(crate) enum ListEntry {
    Page(Rc<Listing>),
    Names(Arc<FolderNames>),
}

impl Listings {
    pub(crate) fn new(kept: Section<ListEntry>) -> Self {
        Self { kept, key: Vec::new() }
    }

    /// Responds with the list of a folder, from what was read of it or is cached. Returns false if it must be read.
    pub(crate) fn respond(
        &mut self,
        name: &[u8],
        read: Option<&LoadedList>,
        request: &Request<'_>,
        response: &mut Response<'_>,
        now: Now,
    ) -> bool {
        let page = self.page(name, read, request, now);
        page.inspect(|page| page.reply(request, response)).is_some()
    }

    /// Returns the requested page; `None` if it must be read.
    ///
    /// Caches only the sequence of pages from the first one on. Clients can request as many others as there are names,
    /// and those would evict all lists.
    fn page(
        &mut self,
        name: &[u8],
        read: Option<&LoadedList>,
        request: &Request<'_>,
        now: Now,
    ) -> Option<Rc<Listing>> {
        let (format, order) = (ListFormat::of(request), ListOrder::of(request.query()));
        let after = rows::after(request.query());
        if after.is_none()
            && let Some(kept) = self.kept_page(name, format, order, 0, now)
        {
            return Some(kept);
        }
        let kept_names = self.kept_names(name, order, now);
        let names = match (read, &kept_names) {
            (Some(read), _) => &read.names,
            (None, Some(names)) => names,
            (None, None) => return None,
        };
        if kept_names.is_none() {
            self.kept.insert(&self.key, ListEntry::Names(Arc::clone(names)));
        }
        let start = after.map_or(0, |after| names.start(&after));
        let is_to_keep = start.is_multiple_of(LISTING_ENTRIES_MAX);
        if is_to_keep && let Some(kept) = self.kept_page(name, format, order, start, now) {
            return Some(kept);
        }
        let listing = Rc::new(Listing::new(format, name, &read?.page, order, names.read_ms));
        if is_to_keep {
            self.write_key(name, format, order, start);
            self.kept.insert(&self.key, ListEntry::Page(Rc::clone(&listing)));
        }
        Some(listing)
    }

    /// Returns the cached page from `start` on, if it is fresh.
    fn kept_page(
        &mut self,
        name: &[u8],
        format: ListFormat,
        order: ListOrder,
        start: usize,
        now: Now,
    ) -> Option<Rc<Listing>> {
        self.write_key(name, format, order, start);
        self.kept.get(&self.key, |entry| match entry {
            ListEntry::Page(page) if now.is_fresh(page.made_ms) => Some(Rc::clone(page)),
            _ => None,
        })
    }

    /// Returns the cached names of the folder that a request lists, if they are fresh.
    pub(crate) fn known_names(
        &mut self,
        name: &[u8],
        request: &Request<'_>,
        now: Now,
    ) -> Option<Arc<FolderNames>> {
        self.kept_names(name, ListOrder::of(request.query()), now)
    }

    fn kept_names(&mut self, name: &[u8], order: ListOrder, now: Now) -> Option<Arc<FolderNames>> {
        self.key.clear();
        self.key.extend_from_slice(name);
        self.key.extend_from_slice(&[0, order.pages_descend().into()]);
        self.kept.get(&self.key, |entry| match entry {
            ListEntry::Names(names) if now.is_fresh(names.read_ms) => Some(Arc::clone(names)),
            _ => None,
        })
    }

    /// Removes all lists of the folder.
    pub(crate) fn clear(&self) {
        self.kept.clear();
    }

    /// Writes the key of a page. The folder's name has no NUL: none can be decoded from a path.
    fn write_key(&mut self, name: &[u8], format: ListFormat, order: ListOrder, start: usize) {
        self.key.clear();
        self.key.extend_from_slice(name);
        self.key.extend_from_slice(&[0, format as u8, order.key()]);
        self.key.extend_from_slice(&start.to_be_bytes());
    }
}

impl ListFormat {
    /// Returns JSON if the client prefers it, else HTML.
    fn of(request: &Request<'_>) -> Self {
        let head = request.head();
        let weight = |media_type| media_type_weight(head.all(KnownField::Accept), media_type);
        match weight(b"application/json") > weight(b"text/html") {
            true => Self::Json,
            false => Self::Html,
        }
    }
}

impl Listing {
    fn new(format: ListFormat, name: &[u8], rows: &rows::ListPage, order: ListOrder, made_ms: u64) -> Self {
        let (media_type, body) = match format {
            ListFormat::Html => ("text/html; charset=utf-8", render::html(name, rows, order)),
            ListFormat::Json => ("application/json", render::json(name, rows, order)),
        };
        // No date: the folder's doesn't change with the lengths and times of its files.
        let validators = Validators::of_bytes(body.as_bytes());
        let about = about(validators.etag.as_deref().unwrap_or_default()).expect("valid field values");
        let body = Shared::Block(Rc::new(body.into_bytes().into()));
        Self { media_type, validators, about, body, made_ms }
    }

    fn reply(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.lines(&self.about);
        match preconditions::evaluate(&request.head(), &self.validators) {
            PreconditionResult::Send => {
                response.field(POLICY.0, POLICY.1).field("X-Content-Type-Options", "nosniff");
                response.field("X-Frame-Options", "SAMEORIGIN");
                response.content_type(self.media_type).body_shared(self.body.clone());
            }
            // A 304 updates the headers of the stored page, so it must not carry a site's policy.
            PreconditionResult::NotModified => {
                response.status(304).field(POLICY.0, POLICY.1);
            }
            PreconditionResult::Failed => {
                response.status(412).text("The list is not the requested version.\n");
            }
        }
    }
}

impl Evictable for ListEntry {
    fn bytes(&self, _: &[u8]) -> u64 {
        match self {
            Self::Page(page) => page.body.len() as u64,
            Self::Names(names) => names.bytes,
        }
    }
}

/// Allows nothing but the page's own style and script, whatever a file's name contains. It has no `frame-ancestors`:
/// browsers would then ignore an `X-Frame-Options` that the site sets.
const POLICY: (&str, &str) = ("Content-Security-Policy", render::POLICY);

fn about(etag: &str) -> Result<FieldLines, String> {
    let mut lines = FieldLines::new();
    lines.push("ETag", etag)?.push("Cache-Control", "no-cache")?.push("Vary", "Accept")?;
    Ok(lines)
}
