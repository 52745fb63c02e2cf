//! Tests of the rules: each finds what is planted into a clean tree, and nothing else does.

use std::collections::BTreeSet;

use super::tree::Tree;
use super::{Finding, RULES, check, prose};

const FILES: &str = "crates/files/src/lib.rs";
const FILES_MANIFEST: &str = "crates/files/Cargo.toml";
const HTTP1: &str = "crates/http1/src/lib.rs";
const ENGINE: &str = "crates/engine/src/lib.rs";
const WORKER: &str = "crates/engine/src/worker.rs";
const TESTS: &str = "crates/engine/tests/it/main.rs";
const IO: &str = "crates/io/src/lib.rs";
const LIMITS: &str = "docs/limits.md";
const MAP: &str = "ARCHITECTURE.md";
const README: &str = "README.md";

/// A rule, the file in which it must find something, and the text that is appended to that file.
const PLANTED: &[(&str, &str, &str)] = &[
    ("crate-walls", FILES_MANIFEST, "shearwater-engine.workspace = true\n"),
    ("crate-walls", FILES_MANIFEST, "serde = \"1\"\n"),
    ("crate-walls", FILES_MANIFEST, "[dependencies.tokio]\nversion = \"1\"\n"),
    ("crate-walls", FILES_MANIFEST, "[build-dependencies]\ncc = \"1\"\n"),
    ("crate-walls", FILES_MANIFEST, "httpdate = { package = \"tokio\", version = \"1\" }\n"),
    ("crate-walls", FILES_MANIFEST, "renamed.workspace = true\n"),
    ("crate-walls", "crates/io/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nnix = \"0.2\"\n"),
    ("crate-walls", "crates/new/Cargo.toml", "package.name = \"shearwater-new\"\nlints.workspace = true\n"),
    ("crate-walls", MAP, "gone -> nothing\n"),
    ("request-path", WORKER, "use std::sync::{Arc, Mutex};\n"),
    ("request-path", WORKER, "static N: std::sync::atomic::AtomicU64 = zero();\n"),
    ("request-path", WORKER, "fn f() -> String {\n    format!(\"{}\", 1)\n}\n"),
    ("request-path", WORKER, "macro_rules! m {\n    () => { RwLock::new(0) };\n}\n"),
    ("request-path", HTTP1, "use std::sync::mpsc;\n"),
    ("sans-io", HTTP1, "use std::time::Duration;\n"),
    ("sans-io", HTTP1, "fn f() {\n    std::thread::yield_now();\n}\n"),
    ("sans-io", HTTP1, "use std::net::{Ipv6Addr, TcpStream};\n"),
    ("sans-io", HTTP1, "use std::{fmt, io::Write};\n"),
    ("clock", FILES, "fn f() -> Instant {\n    Instant::now()\n}\n"),
    ("clock", ENGINE, "fn f() {\n    call(std::time::SystemTime::now);\n}\n"),
    ("file-system", ENGINE, "use std::{fs, io};\n"),
    ("file-system", ENGINE, "use std::fs::{File, Metadata};\n"),
    ("event-match", ENGINE, "fn f(e: Event) {\n    if let Event::Woken = e {}\n}\n"),
    ("event-match", FILES, "fn f(e: E) -> bool {\n    matches!(e, io::Event::Sent { .. })\n}\n"),
    ("event-match", ENGINE, "use shearwater_io::Event::{self, Woken};\n"),
    ("event-match", ENGINE, "use shearwater_io::{Driver, Event as Happening};\n"),
    ("event-match", WORKER, "fn more(e: Event) {\n    match e {\n        Event::Woken => (),\n    }\n}\n"),
    ("framing", ENGINE, "fn f(h: Head) -> bool {\n    h.field(Known::ContentLength).is_some()\n}\n"),
    ("framing", ENGINE, "use shearwater_http1::Known::{Host, TransferEncoding};\n"),
    ("framing", ENGINE, "use shearwater_http1::Known::*;\n"),
    ("framing", ENGINE, "fn f(h: Head) {\n    h.field_named(\"Content-Length\");\n}\n"),
    (
        "framing",
        FILES,
        "fn f(out: &mut Vec<u8>) {\n    out.extend(b\"Transfer-Encoding: chunked\\r\\n\");\n}\n",
    ),
    ("framing", FILES, "fn f(out: &mut Vec<u8>) {\n    encode::content_length(out, 1);\n}\n"),
    ("os-conditions", FILES, "#[cfg(target_os = \"linux\")]\nfn f() {}\n"),
    ("os-conditions", "crates/tasks/src/lib.rs", "#[cfg(not(unix))]\nfn f() {}\n"),
    ("os-conditions", FILES, "fn f() -> bool {\n    cfg!(windows)\n}\n"),
    ("os-conditions", FILES, "#[cfg_attr(all(test, target_family = \"unix\"), inline)]\nfn f() {}\n"),
    ("os-conditions", FILES_MANIFEST, "[target.'cfg(unix)'.dependencies]\nshearwater.workspace = true\n"),
    ("unsafe-fence", ENGINE, "#[allow(unsafe_code, reason = \"speed\")]\nmod quick {}\n"),
    ("unsafe-fence", TESTS, "#![expect(\n    unsafe_code,\n    reason = \"a test\"\n)]\n"),
    ("panics", FILES, "fn f(x: Option<u8>) -> u8 {\n    x.unwrap()\n}\n"),
    ("panics", FILES, "fn f(x: Vec<Option<u8>>) {\n    x.into_iter().map(Option::unwrap);\n}\n"),
    ("panics", FILES, "fn f(x: Option<u8>) -> u8 {\n    x.expect(\n        \"some\",\n    )\n}\n"),
    ("sleeping-tests", TESTS, "fn f() {\n    std::thread::sleep(LONG);\n}\n"),
    ("sleeping-tests", TESTS, "use std::thread::{self, sleep};\n"),
    (
        "sleeping-tests",
        FILES,
        "#[cfg(test)]\nmod tests {\n    fn f() {\n        thread::sleep(LONG);\n    }\n}\n",
    ),
    ("leftovers", FILES, concat!("// FIX", "ME: later\n")),
    ("leftovers", FILES_MANIFEST, concat!("# TO", "DO: more\n")),
    ("machine-paths", README, concat!("Look into /ho", "me/somebody/x.\n")),
    ("machine-paths", FILES, concat!("const F: &str = \"/tmp/", "bash_jobs\";\n")),
    ("foreign-types", IO, "pub fn f(t: mio::Token) {}\n"),
    ("foreign-types", IO, "pub fn f() -> impl Iterator<Item = mio::Token> {}\n"),
    ("foreign-types", IO, "pub fn f<T>(t: &T)\nwhere\n    T: mio::event::Source,\n{\n}\n"),
    ("foreign-types", IO, "use mio::Token as Mark;\n\npub struct S {\n    pub t: Option<Mark>,\n}\n"),
    ("foreign-types", IO, "use mio::{self as m, Poll};\n\npub struct S(pub m::Token);\n"),
    ("foreign-types", IO, "pub enum E {\n    A { t: mio::Token },\n}\n"),
    ("foreign-types", IO, "pub trait T {\n    fn f(&self) -> Box<dyn mio::event::Source>;\n}\n"),
    ("foreign-types", IO, "pub const C: Option<mio::Token> = None;\n"),
    ("foreign-types", IO, "pub use mio::Token;\n"),
    (
        "foreign-types",
        IO,
        "pub struct S;\n\nimpl S {\n    pub fn f(&self) -> mio::Token {\n        g()\n    }\n}\n",
    ),
    ("foreign-types", IO, "pub struct S;\n\nimpl From<mio::Token> for S {}\n"),
    ("foreign-types", IO, "pub trait T {}\n\nimpl<M> T for M where M: mio::event::Source {}\n"),
    ("foreign-types", IO, "type Inner = Box<mio::Token>;\n\npub fn f() -> Inner {}\n"),
    ("foreign-types", IO, "pub mod inside {\n    pub fn f(t: mio::Token) {}\n}\n"),
    ("files", "crates/io/src/new.rs", "fn f() {}\n"),
    ("limits-page", "crates/io/src/limits.rs", "/// New.\npub const TURNS_MAX: usize = 1;\n"),
    (
        "limits-page",
        "crates/io/src/limits.rs",
        "pub struct Limits {\n    /// New.\n    pub head_bytes_max: usize,\n}\n",
    ),
    ("limits-page", LIMITS, "| `GONE_MAX` | 1 | nothing |\n"),
    ("map", MAP, "2. `crates/engine/src/worker.rs::gone`\n"),
    ("map", MAP, "2. `crates/engine/src/gone.rs::turn`\n"),
    ("map", LIMITS, "`crates/engine/src/worker.rs::gone`\n"),
    ("map", MAP, "\n## Rooms\n\n`crates/gone/`\n"),
    ("links", README, "[gone](docs/gone.md)\n"),
    ("links", README, "[gone](docs/limits.md#gone)\n"),
    ("links", README, "[out](../../else.md)\n"),
    ("links", README, "![`picture`](docs/gone.svg \"title\")\n"),
    ("links", README, "\n[name]: docs/gone.md\n"),
    ("prose", FILES, "/// What is served.\nfn f() {}\n"),
    ("prose", FILES, "/// A type.\n///\n/// Whether it is open.\nfn f() {}\n"),
    ("prose", FILES, "// The client is put out.\n"),
    ("prose", README, "A request is answered.\n"),
];

/// Texts that resemble a violation, with the file that they are appended to.
const ALLOWED: &[(&str, &str)] = &[
    (WORKER, "// No Mutex, no Event::Woken here.\nconst S: &str = \"Mutex HashMap // \";\n"),
    (WORKER, "struct MutexFree;\nstruct Atomics;\nfn unwrap_or(x: X) -> X {\n    x.unwrap_or_default()\n}\n"),
    (
        WORKER,
        "#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n    fn f() {\n        Instant::now();\n    }\n}\n",
    ),
    (WORKER, "#[test]\nfn f() {\n    let quote = '\"';\n    Some(1).unwrap();\n}\n"),
    (FILES, concat!("const S: &[&str] = &[\"http://x/ XX", "X\", r#\"a // \"b\"#];\n")),
    (
        FILES,
        "fn f(p: P) {\n    p.expect(Token::Comma);\n    p.expect(\"HEAD\", 200);\n    p.expect(\"the table is never empty\");\n}\n",
    ),
    (
        FILES,
        "#[cfg(debug_assertions)]\nfn f() {}\n#[cfg(test)]\nmod unix {}\n#[cfg(target_arch = \"x86_64\")]\nfn g() {}\n",
    ),
    (FILES, "fn f(e: BodyEvent) -> bool {\n    matches!(e, BodyEvent::Done)\n}\n"),
    (FILES, "/// Returns `answer`.\n///\n/// - What is listed\nfn f() {}\nconst S: &str = \"put out\";\n"),
    (FILES_MANIFEST, "[dev-dependencies]\nhttparse = \"1\"\n"),
    (HTTP1, "use std::fmt::Write;\nuse std::net::Ipv6Addr;\n"),
    (
        TESTS,
        "fn f(e: Option<Event>) {\n    match e.unwrap() {\n        Event::Woken => std::fs::read(\"x\"),\n        _ => (),\n    }\n}\n",
    ),
    ("crates/cli/src/main.rs", "fn f(m: &Mutex<u8>) {\n    thread::sleep(LONG);\n    Instant::now();\n}\n"),
    (
        "crates/engine/examples/show.rs",
        "//! Shows the engine.\n\nfn main() {\n    std::fs::read(\"x\");\n    Instant::now();\n}\n",
    ),
    ("crates/tasks/tests/it/main.rs", "//! Tests of tasks.\n\n#[cfg(unix)]\nfn f() {}\n"),
    (
        "crates/io/src/limits.rs",
        "#[cfg(unix)]\n#[expect(unsafe_code, reason = \"a system call\")]\nfn f() {}\n",
    ),
    (
        IO,
        "use mio::Token as Mark;\n\npub struct S {\n    t: Mark,\n}\n\nfn f(t: Mark) {}\n\npub(crate) fn g() -> mio::Poll {}\n",
    ),
    (IO, "struct S;\n\nimpl mio::event::Source for S {}\n\npub struct P(mio::Token);\n"),
    (
        IO,
        "trait Inner {}\n\nimpl Inner for mio::Token {}\n\npub fn f(d: &std::time::Duration) -> usize {\n    mio::f()\n}\n",
    ),
    (IO, "#[cfg(test)]\nmod tests {\n    pub fn f(t: mio::Token) {}\n}\n"),
    (README, "<https://example.org> [x](https://example.org) `[x](gone.md)`\n\n```\n[x](gone.md)\n```\n"),
    (README, concat!("Put it into site/ro", "ot/x and ../ho", "me/y.\n")),
    (LIMITS, "[home](../README.md#program) [docs](../docs) [here](#limits) `GET`\n"),
    (MAP, "2. `crates/engine/src/worker.rs::Worker::turn` in `crates/*`\n"),
];

/// A tree without findings: a crate's files, or else what the tables of the rules name.
fn clean() -> Tree {
    let mut tree = Tree::default();
    let mut put = |path: &str, text: &str| tree.put(path, text.to_owned());
    for place in super::words::places() {
        let path = if place.ends_with('/') { format!("{place}any.rs") } else { place.to_owned() };
        put(&path, "//! A file that is named by a table.\n");
    }
    put("Cargo.toml", "[workspace.dependencies]\nrenamed = { package = \"tokio\", version = \"1\" }\n");
    put(
        MAP,
        "io -> nothing (mio)  the kernel\nfiles -> shearwater, io (httpdate)  files\n\n## The way of a request\n\n1. `crates/engine/src/worker.rs::turn`\n\n",
    );
    put(
        README,
        "# Program\n\nSee [the map](ARCHITECTURE.md#the-way-of-a-request) and [limits](docs/limits.md).\n",
    );
    put(LIMITS, "# Limits\n\n| `PIECES_MAX` | 16 | more are refused |\n");
    for (room, uses) in [("io", "mio.workspace = true\n"), ("files", "shearwater.workspace = true\n")] {
        let text =
            format!("package.name = \"shearwater-{room}\"\nlints.workspace = true\n\n[dependencies]\n{uses}");
        put(&format!("crates/{room}/Cargo.toml"), &text);
    }
    put(
        WORKER,
        "//! The event loop.\n\nfn turn(event: Event) {\n    match event {\n        Event::Woken => (),\n    }\n}\n",
    );
    put(TESTS, "//! Tests of the engine.\n\n#[test]\nfn turns() {\n    assert_eq!(1 + 1, 2);\n}\n");
    put(
        "crates/io/src/limits.rs",
        "//! Bounds of drivers.\n\n/// Pieces of one output.\npub const PIECES_MAX: usize = 16;\n",
    );
    for path in [FILES, HTTP1, ENGINE, IO, "crates/cli/src/main.rs", "crates/tasks/src/lib.rs"] {
        put(path, "//! The root of a crate.\n\n");
    }
    tree
}

fn check_with(path: &str, appended: &str) -> Vec<Finding> {
    let mut tree = clean();
    let text = format!("{}{appended}", tree.text(path));
    tree.put(path, text);
    check(&tree)
}

#[test]
fn a_clean_tree_has_no_findings() {
    assert_eq!(check(&clean()), []);
}

#[test]
fn each_planted_violation_is_found_by_its_rule_alone() {
    for (rule, path, text) in PLANTED {
        let found = check_with(path, text);
        assert!(!found.is_empty(), "{rule}: {text}");
        assert!(
            found.iter().all(|finding| finding.rule == *rule && finding.path == *path),
            "{text}: {found:#?}"
        );
    }
}

#[test]
fn each_rule_has_a_planted_violation() {
    let planted: BTreeSet<&str> = PLANTED.iter().map(|(rule, ..)| *rule).collect();
    let rules: BTreeSet<&str> =
        RULES.iter().flat_map(|rule| (rule.reasons)()).map(|(name, _)| name).collect();
    assert_eq!(rules, planted);
}

#[test]
fn passes_what_resembles_a_violation() {
    for (path, text) in ALLOWED {
        assert_eq!(check_with(path, text), [], "{text}");
    }
}

#[test]
fn rejects_long_files_wrong_names_missing_lints_unused_entries_and_empty_maps() {
    let long = check_with(FILES, &"\n".repeat(500));
    assert!(long.iter().all(|finding| finding.rule == "files") && long.len() == 1, "{long:#?}");
    for (path, text, rule) in [
        (FILES_MANIFEST, "package.name = \"files\"\nlints.workspace = true\n", "crate-walls"),
        (FILES_MANIFEST, "package.name = \"shearwater-files\"\n", "crate-walls"),
        ("crates/allocator/src/lib.rs", "//! The program's allocator.\n", "foreign-types"),
        (MAP, "io -> nothing (mio)\nfiles -> shearwater\n\n## The way of a request\n\nNothing.\n", "map"),
    ] {
        let mut tree = clean();
        tree.put(path, text.to_owned());
        let found = check(&tree);
        assert!(!found.is_empty() && found.iter().all(|finding| finding.rule == rule), "{text}: {found:#?}");
    }
}

#[test]
fn a_finding_prints_place_rule_fault_and_help() {
    let found = check_with(README, "\n[gone](docs/gone.md)\n");
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["README.md:5: links: the link `docs/gone.md` leads nowhere; help: correct or remove the link"]
    );
}

#[test]
fn prose_passes_up_to_its_ceiling() {
    let mut tree = clean();
    tree.put(README, "# Program\n\nThe answer is told what an answer is.\n".to_owned());
    tree.put("xtask/prose.toml", "\"README.md\" = 2\n\"gone\" = 1\n".to_owned());
    let found: Vec<String> = check(&tree).iter().map(|finding| finding.what.clone()).collect();
    assert_eq!(found, ["3 hits in README.md, the ceiling is 2", "`gone` does not exist"]);
    assert_eq!(prose::hits(&tree, "README.md").len(), 3);
    tree.put("xtask/prose.toml", "\"README.md\" = 3\n".to_owned());
    assert_eq!(check(&tree), []);
}
