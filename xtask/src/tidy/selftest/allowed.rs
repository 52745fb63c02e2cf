//! What looks like a violation and is none: the clean tree stays clean with each of these.

use super::clean::Sources;

const COLD: &str = "crates/engine/src/lib.rs";
const WORKER: &str = "crates/engine/src/worker.rs";
const FILES: &str = "crates/files/src/lib.rs";
const TESTS: &str = "crates/engine/tests/it/main.rs";
const KNOWN: &str = "crates/http1/src/known.rs";
const RATCHET: &str = "xtask/tidy-ratchet.txt";

/// Changes the clean tree.
pub(super) type Change = fn(&mut Sources);

/// What is allowed and how it looks.
pub(super) const ALLOWED: &[(&str, Change)] = &[
    ("banned words in comments and strings", |s| {
        s.append(WORKER, "// No Mutex, no unsafe, no Event::Woken here.\nconst S: &str = \"unsafe Mutex x.unwrap() // \";\n");
    }),
    ("a marker inside a string", |s| {
        s.append(FILES, concat!("const S: &[&str] = &[\"http://x/ XX", "X\", r#\"// FIX", "ME\"#];\n"));
    }),
    ("words that contain banned ones", |s| {
        s.append(
            WORKER,
            "struct MutexFree;\nstruct Atomics;\nfn unwrap_or(x: X) -> X {\n    x.unwrap_or_default()\n}\n",
        );
    }),
    ("development dependencies", |s| {
        s.append("crates/http1/Cargo.toml", "[dev-dependencies]\nhttparse = \"1\"\n");
    }),
    ("addresses and formatting in the protocol crate", |s| {
        s.append(KNOWN, "use std::fmt::Write;\nuse std::net::Ipv6Addr;\n");
    }),
    ("locks and clocks in a module for tests", |s| {
        s.append(WORKER, "#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n    fn f() {\n        Instant::now();\n    }\n}\n");
    }),
    ("a test module in files of its own", |s| {
        s.append(COLD, "#[cfg(test)]\nmod proofs;\n");
        s.put(
            "crates/engine/src/proofs/mod.rs",
            "//! Proofs of the engine.\n\nfn f(x: Option<u8>) {\n    x.unwrap();\n}\n",
        );
        s.put(
            "crates/engine/src/proofs/more.rs",
            "//! Further proofs here.\n\nfn f() {\n    std::fs::read(\"x\").unwrap();\n}\n",
        );
    }),
    ("unwrap and events in integration tests", |s| {
        s.append(TESTS, "fn f(e: Option<Event>) {\n    match e.unwrap() {\n        Event::Woken => (),\n        _ => (),\n    }\n}\n");
    }),
    ("atomics off the hot way", |s| s.append(COLD, "use std::sync::atomic::AtomicU64;\n")),
    ("locks and sleeping in the program", |s| {
        s.append(
            "crates/cli/src/main.rs",
            "fn f(m: &Mutex<u8>) {\n    thread::sleep(LONG);\n    Instant::now();\n}\n",
        );
    }),
    ("a clock and a file in an example", |s| {
        s.put(
            "crates/engine/examples/show.rs",
            "//! Shows the engine.\n\nfn main() {\n    std::fs::read(\"x\");\n    Instant::now();\n}\n",
        );
    }),
    ("conditions on other things", |s| {
        s.append(FILES, "#[cfg(debug_assertions)]\nfn f() {}\n#[cfg(target_arch = \"x86_64\")]\nfn g() {}\nuse std::os::unix;\n");
    }),
    ("conditions on the system in io", |s| s.append("crates/io/src/limits.rs", "#[cfg(unix)]\nfn f() {}\n")),
    ("unsafe code in io and the scanner", |s| {
        s.append("crates/io/src/limits.rs", "unsafe fn f() {}\n");
        s.put("crates/http1/src/scan/wide.rs", "//! A wide scanner.\n\nunsafe fn f() {}\n");
    }),
    ("an allocator that counts, in a test binary", |s| {
        s.put(
            "crates/http1/tests/allocations.rs",
            "//! Counts the allocations.\n\nunsafe impl GlobalAlloc for Counting {}\n",
        );
    }),
    ("making events, and other events", |s| {
        s.append(COLD, "fn f() -> Event {\n    Event::Woken\n}\nfn g(e: BodyEvent) -> bool {\n    matches!(e, BodyEvent::Done)\n}\n");
    }),
    ("nested patterns in the one match", |s| {
        s.replace(WORKER, "Event::Woken => ()", "Event::Woken | Event::Closed(_) => match x {\n            Some(1) => (),\n            _ => (),\n        }");
    }),
    ("other errors about lengths", |s| {
        s.append(COLD, "fn f(r: Reject) -> bool {\n    matches!(r, Reject::ContentLength)\n}\nuse shearwater_http1::Known;\n");
    }),
    ("an argued allow", |s| {
        s.append(FILES, "// The table is generated.\n#[allow(dead_code)]\nfn f() {}\n#[expect(dead_code, reason = \"used later\")]\nfn g() {}\n");
    }),
    ("a comment on the allow's line, and above its siblings", |s| {
        s.append(FILES, "#[allow(dead_code)] // generated\nfn f() {}\n// Generated.\n#[inline]\n#[allow(dead_code)]\nfn g() {}\n");
    }),
    ("a call named expect", |s| {
        s.append(
            FILES,
            "fn f(p: P) {\n    p.expect(Token::Comma);\n    p.expect(\"HEAD\", 200);\n    p.expect(\"the table is never empty\");\n}\n",
        );
    }),
    ("an ignored test with its reason", |s| {
        s.append(TESTS, "#[test]\n#[ignore = \"needs an hour\"]\nfn long() {}\n");
    }),
    ("a file and a function of exactly the allowed length", |s| {
        s.append(FILES, &format!("fn long() {{\n{}}}\n", "    step();\n".repeat(68)));
        s.append(FILES, &"\n".repeat(500 - 3 - 70));
    }),
    ("an exception at its exact figure", |s| {
        s.append(FILES, &format!("fn long() {{\n{}}}\n", "    step();\n".repeat(78)));
        s.append(RATCHET, &format!("fn {FILES}::long 80\n"));
    }),
    ("links with a scheme, in code and in blocks", |s| {
        s.append(
            "README.md",
            "<https://example.org> [x](https://example.org) `[x](gone.md)`\n\n```\n[x](gone.md)\n```\n",
        );
    }),
    ("links to folders, upwards and to headings", |s| {
        s.append("docs/limits.md", "[home](../README.md#program) [docs](../docs) [here](#limits)\n");
    }),
    ("a method of a type on the map", |s| {
        s.append(KNOWN, "impl Known {\n    fn name(&self) {}\n}\n");
        s.append("ARCHITECTURE.md", "2. `crates/http1/src/known.rs::Known::name` in `crates/*`\n");
    }),
    ("profiles without a word on panics", |s| {
        s.append("Cargo.toml", "[profile.profiling]\ninherits = \"release\"\n");
    }),
    ("a folder of that name further down", |s| {
        s.append("README.md", concat!("Put it into site/ro", "ot/x and ../ho", "me/y.\n"));
    }),
    ("methods and headers in the list of limits", |s| {
        s.append("docs/limits.md", "`GET` and `Content-Length`\n");
    }),
];
