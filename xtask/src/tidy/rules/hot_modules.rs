//! Rule `hot-modules`: what the way of a request may not touch.
//!
//! Workers share nothing mutable, and a request on a warm connection allocates nothing. A lock or an atomic
//! read-modify-write there is a design fault, not a detail to be measured later.

use super::Rule;
use crate::tidy::code::{Code, Kind, Token};
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "hot-modules",
    reason: "no locks, atomics, channels, hash maps or format! on the way of a request: workers share nothing and allocate nothing per request",
    check,
};

/// Files, and folders with their `/`, on the way of a request.
const HOT: &[&str] = &[
    "crates/engine/src/worker.rs",
    "crates/engine/src/read.rs",
    "crates/engine/src/dispatch.rs",
    "crates/engine/src/respond.rs",
    "crates/engine/src/write.rs",
    "crates/http1/src/",
];

const TABLE: &str = "xtask/src/tidy/rules/hot_modules.rs";

const OWN: &str = "give each worker its own and let the reader sum or collect";
const NO_WAIT: &str = "keep the state in the worker that uses it";
const MAP: &str = "index an array by slot or by known name, or search a short sorted slice";

/// Names that may not occur, each with what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("Mutex", NO_WAIT),
    ("RwLock", NO_WAIT),
    ("Condvar", NO_WAIT),
    ("Barrier", NO_WAIT),
    ("mpsc", "hand over through the driver's waker and a queue that is emptied once a turn"),
    ("HashMap", MAP),
    ("HashSet", MAP),
];

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust() {
        if file.is_shipped() && HOT.iter().any(|place| covers(place, &file.path)) {
            for (line, what, instead) in breaches(code) {
                report.add(&file.path, line, format!("`{what}` on the way of a request"), instead);
            }
        }
    }
    for place in HOT.iter().filter(|place| !tree.exists(place)) {
        report.add(
            TABLE,
            1,
            format!("the list names `{place}`, which does not exist"),
            "name the file that took its place",
        );
    }
}

fn covers(place: &str, path: &str) -> bool {
    path == place || (place.ends_with('/') && path.starts_with(place))
}

fn breaches(code: &Code) -> Vec<(usize, String, &'static str)> {
    let banned =
        |token: &Token| BANNED.iter().find(|(name, _)| token.is_ident(name)).map(|(_, instead)| *instead);
    let names = code.tokens.iter().filter(|token| !token.test).filter_map(|token| {
        let instead = if is_atomic(token) { Some(OWN) } else { banned(token) };
        instead.map(|instead| (token.line, token.text.clone(), instead))
    });
    let formats = code.macros("format").filter(|token| !token.test);
    names
        .chain(formats.map(|token| (token.line, "format!".to_owned(), "append to the turn's output")))
        .collect()
}

/// `AtomicU64` and its kin, not `Atomic` as part of another word.
fn is_atomic(token: &Token) -> bool {
    let rest = token.text.strip_prefix("Atomic").unwrap_or("");
    token.kind == Kind::Ident && rest.starts_with(char::is_uppercase)
}
