//! The app under test: each response names its request, so that mix-ups are detected.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write;
use std::panic;
use std::rc::{Rc, Weak};
use std::sync::{Once, OnceLock};

use super::handlers;
use shearwater_engine::http1::Head;
use shearwater_engine::io::fs::Meta;
use shearwater_engine::io::{FileSlice, Item, Shared, SharedFile};
use shearwater_engine::{BodyPolicy, FieldLines, Prebuilt, Request, Response, Service, TlsSession};

/// Panic message of handlers.
pub(crate) const ON_PURPOSE: &str = "a panic on purpose";
/// Length of the response at `/big`.
pub(crate) const BIG_BYTES: usize = 3 * 1024 * 1024;
/// Length of the response at `/file`.
pub(crate) const FILE_BYTES: usize = 1200 * 1024;
/// Size limit of `/buffer`.
pub(crate) const BUFFER_BYTES_MAX: u64 = 32 * 1024;
/// Size limit of `/passed`.
pub(crate) const PASSED_BYTES_MAX: u64 = 64 * 1024;
/// Size above which `/pulled-refuses` rejects the body.
pub(crate) const REFUSED_AT: usize = 100;

thread_local! {
    /// Number of times that an idle worker has trimmed the app.
    pub(crate) static SERVICE_TRIMS: Cell<u32> = const { Cell::new(0) };
}

/// The app under test.
pub(crate) struct TestApp;

impl Service for TestApp {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let route = first_segment(head.path());
        if handlers::takes_body(route) {
            return BodyPolicy::Call;
        }
        match route {
            "passed" => BodyPolicy::Pass { bytes_max: PASSED_BYTES_MAX },
            "buffer" | "buffer-never" => BodyPolicy::Buffer { bytes_max: BUFFER_BYTES_MAX },
            "policy-panics" => panic!("{ON_PURPOSE}"),
            _ => BodyPolicy::Discard,
        }
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let query = request.query().unwrap_or_default();
        let route = first_segment(request.path());
        if handlers::respond(route, request, response) {
            return;
        }
        if query == "205" {
            response.status(205);
        }
        match route {
            "panic" => panic!("{ON_PURPOSE}"),
            "half-panic" => {
                response.status(201).field("X-Half", "done").body_static(big());
                panic!("{ON_PURPOSE}");
            }
            "file-fails" => {
                let error = if query.is_empty() { "permission denied" } else { query };
                response
                    .status(403)
                    .text("Forbidden\n")
                    .report_file(format!("/srv{}\nforged", request.path()), error);
            }
            "big" => drop(response.body_static(big())),
            "file" => drop(response.body_file(file_slice(FILE_BYTES as u64))),
            "kept-file" => drop(response.prebuilt(&kept_file())),
            "own-file" => drop(response.body_file(own_slice())),
            "short-file" => drop(response.body_file(file_slice(FILE_BYTES as u64 + 1))),
            "changed-file" => drop(response.body_file(changed_slice())),
            "close" => drop(response.text(&named(request)).close()),
            "status" => drop(response.status(query.parse().expect("a number")).text(&named(request))),
            "field" => drop(response.field(query, "x").text("must not be seen")),
            "value" => drop(response.field("X-Value", "a\r\nX-Other: b").text("must not be seen")),
            "prebuilt" => {
                response.text("must not be seen").prebuilt(&prebuilt());
                match query {
                    "" => {}
                    "text" => drop(response.status(403).text("no")),
                    "type" => drop(response.field("X-Own", "1").content_type("text/css")),
                    status => drop(response.status(status.parse().expect("a number"))),
                }
            }
            "peer" => drop(response.text(&format!("{:?}", request.peer()))),
            "client" => drop(response.text(&format!("{:?}", request.client()))),
            "client-later" => response.defer(request, |mut call| async move {
                let client = call.client();
                call.response().text(&format!("{client:?}"));
            }),
            "scheme" => drop(response.text(request.scheme())),
            "scheme-later" => response.defer(request, |mut call| async move {
                let scheme = if call.is_secure() { "https" } else { "http" };
                call.response().text(scheme);
            }),
            "tls" => drop(response.text(&tls_text(request.tls()))),
            "tls-later" => response.defer(request, |mut call| async move {
                let text = tls_text(call.tls());
                call.response().text(&text);
            }),
            "passed" => match request.kept_body() {
                Some(_) => drop(response.field("X-Passed", "whole").text(&named(request))),
                None => response.defer(request, handlers::pulled),
            },
            "empty" => {}
            _ => drop(response.text(&named(request))),
        }
    }

    fn trim(&self) {
        SERVICE_TRIMS.set(SERVICE_TRIMS.get() + 1);
    }
}

/// Returns the facts of a TLS session as text.
fn tls_text(session: Option<TlsSession>) -> String {
    session.map_or_else(
        || "plain".to_owned(),
        |session| {
            let certificates: Vec<_> = session.client_chain().map(String::from_utf8_lossy).collect();
            format!("{session:?} {certificates:?}")
        },
    )
}

/// Returns a response's text: the request's method and target, and a digest of its body.
fn named(request: &Request<'_>) -> String {
    text_of(
        request.head().method_name(),
        request.head().target_str(),
        request.kept_body().unwrap_or_default(),
    )
}

/// Returns the text of the app's response to a request.
pub(crate) fn text_of(method: &str, target: &str, body: &[u8]) -> String {
    format!("{method} {target} {} {:016x}\n", body.len(), digest(DIGEST_START, body))
}

fn first_segment(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

pub(crate) const DIGEST_START: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a, computed piece by piece.
pub(crate) fn digest(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Returns the bytes at `/big`.
pub(crate) fn big() -> &'static [u8] {
    static BIG: OnceLock<Vec<u8>> = OnceLock::new();
    BIG.get_or_init(|| pattern(b'A', BIG_BYTES))
}

/// Returns the bytes of the file.
pub(crate) fn file_bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| pattern(b'a', FILE_BYTES))
}

/// Returns bytes that reveal shifts and gaps: numbered lines of letters.
fn pattern(first: u8, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 64);
    let mut line = 0;
    while bytes.len() < len {
        let letter = first + (line % 26) as u8;
        bytes.extend_from_slice(format!("{line:08}").as_bytes());
        bytes.resize(bytes.len() + 54, letter);
        bytes.extend_from_slice(b"\r\n");
        line += 1;
    }
    bytes.truncate(len);
    bytes
}

thread_local! {
    /// A prebuilt response.
    static PREBUILT: Rc<Prebuilt> = Rc::new(make_prebuilt());
    /// An unlinked file, one per thread.
    static FILE: Rc<SharedFile> = Rc::new(SharedFile::new(make_file()));
    /// The response at `/kept-file`, while it exists.
    static KEPT: RefCell<Weak<Prebuilt>> = const { RefCell::new(Weak::new()) };
}

/// Returns the file as a response held by the engine alone.
fn kept_file() -> Rc<Prebuilt> {
    KEPT.with_borrow_mut(|kept| {
        kept.upgrade().unwrap_or_else(|| {
            let file = Item::File(own_slice());
            let response =
                Rc::new(Prebuilt::new("text/plain", &FieldLines::new(), file).expect("a media type"));
            *kept = Rc::downgrade(&response);
            response
        })
    })
}

/// Returns true if the engine holds it.
pub(crate) fn is_kept() -> bool {
    KEPT.with_borrow(|kept| kept.strong_count() > 0)
}

/// Returns the prebuilt response.
pub(crate) fn prebuilt() -> Rc<Prebuilt> {
    PREBUILT.with(Rc::clone)
}

fn make_prebuilt() -> Prebuilt {
    let mut lines = FieldLines::new();
    lines.push("ETag", "\"1\"").expect("a field");
    let body = Item::Shared(Shared::Static(b"encoded before\n"));
    Prebuilt::new("text/plain", &lines, body).expect("a media type")
}

fn make_file() -> File {
    let name = format!("shearwater-engine-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name.replace(['(', ')'], ""));
    let mut options = File::options();
    let mut file =
        options.read(true).write(true).create(true).truncate(true).open(&path).expect("a temporary file");
    file.write_all(file_bytes()).expect("room for a temporary file");
    std::fs::remove_file(&path).expect("it was made just now");
    file
}

fn file_slice(len: u64) -> FileSlice {
    FileSlice { file: FILE.with(Rc::clone), offset: 0, len }
}

/// Opens the file with a separate descriptor.
fn own_slice() -> FileSlice {
    let file = FILE.with(|file| file.try_clone()).expect("another descriptor");
    FileSlice { file: Rc::new(SharedFile::new(file)), offset: 0, len: FILE_BYTES as u64 }
}

/// Returns the file with the length that it had before it was truncated by a byte.
fn changed_slice() -> FileSlice {
    let file = FILE.with(|file| file.try_clone()).expect("another descriptor");
    let meta = Meta::of(&file).expect("its metadata");
    let before = Meta { len: meta.len + 1, ..meta };
    FileSlice { file: Rc::new(SharedFile::new(file).in_version(before)), offset: 0, len: FILE_BYTES as u64 }
}

/// Hides intended panics from the tests' output.
pub(crate) fn hush() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<String>();
            if text.is_none_or(|text| text != ON_PURPOSE) {
                previous(info);
            }
        }));
    });
}
