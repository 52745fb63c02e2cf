//! For each rule, violations planted into the clean tree. Each must make that rule fail, and no other.

use super::clean::Sources;

/// A violation: the rule it breaks, where the finding must stand, and how it is planted.
pub(super) struct Planted {
    pub(super) rule: &'static str,
    pub(super) path: &'static str,
    pub(super) plant: fn(&mut Sources),
}

pub(super) const fn planted(rule: &'static str, path: &'static str, plant: fn(&mut Sources)) -> Planted {
    Planted { rule, path, plant }
}

/// A source file of `crates/engine` that is not on the hot way.
const COLD: &str = "crates/engine/src/lib.rs";
const WORKER: &str = "crates/engine/src/worker.rs";
const FILES: &str = "crates/files/src/lib.rs";
const KNOWN: &str = "crates/http1/src/known.rs";
const TESTS: &str = "crates/engine/tests/it/main.rs";
const FILES_MANIFEST: &str = "crates/files/Cargo.toml";
const TABLE_OF_CRATES: &str = "xtask/src/tidy/rules/crate_walls.rs";
const TABLE_OF_HOT: &str = "xtask/src/tidy/rules/hot_modules.rs";
const RATCHET: &str = "xtask/tidy-ratchet.txt";
const MAP: &str = "ARCHITECTURE.md";
const LIMITS: &str = "docs/limits.md";

pub(super) const WALLS: &[Planted] = &[
    planted("readable", FILES, |s| s.append(FILES, "fn open() {\n")),
    planted("readable", FILES_MANIFEST, |s| s.append(FILES_MANIFEST, "no setting\n")),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.append(FILES_MANIFEST, "shearwater-engine.workspace = true\n");
    }),
    planted("crate-walls", FILES_MANIFEST, |s| s.append(FILES_MANIFEST, "serde = \"1\"\n")),
    planted("crate-walls", FILES_MANIFEST, |s| s.append(FILES_MANIFEST, "tokio = { version = \"1\" }\n")),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.append(FILES_MANIFEST, "[dependencies.tower]\nversion = \"1\"\n");
    }),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.append(FILES_MANIFEST, "[build-dependencies]\ncc = \"1\"\n");
    }),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.append(FILES_MANIFEST, "httpdate = { package = \"tokio\", version = \"1\" }\n");
    }),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.append(
            "Cargo.toml",
            "[workspace.dependencies]\nclock = { package = \"tokio\", version = \"1\" }\n",
        );
        s.append(FILES_MANIFEST, "clock.workspace = true\n");
    }),
    planted("crate-walls", "crates/io/Cargo.toml", |s| {
        s.append("crates/io/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nnix = \"0.2\"\n");
    }),
    planted("crate-walls", FILES_MANIFEST, |s| {
        s.replace(FILES_MANIFEST, "\"shearwater-files\"", "\"files\"");
    }),
    planted("crate-walls", "crates/new/Cargo.toml", |s| {
        s.put("crates/new/Cargo.toml", "package.name = \"shearwater-new\"\n");
    }),
    planted("crate-walls", TABLE_OF_CRATES, |s| s.remove(FILES_MANIFEST)),
    planted("unsafe-fence", FILES, |s| s.append(FILES, "fn f(p: *const u8) -> u8 {\n    unsafe { *p }\n}\n")),
    planted("unsafe-fence", FILES, |s| s.append(FILES, "#[unsafe(no_mangle)]\nfn f() {}\n")),
    planted("unsafe-fence", TESTS, |s| s.append(TESTS, "fn f(p: *const u8) -> u8 {\n    unsafe { *p }\n}\n")),
    planted("unsafe-fence", KNOWN, |s| {
        s.append(KNOWN, "unsafe impl Send for Known {}\n");
    }),
    planted("unsafe-fence", FILES, |s| s.replace(FILES, "#![forbid(unsafe_code)]\n", "")),
    planted("unsafe-fence", FILES, |s| {
        s.replace(FILES, "#![forbid(unsafe_code)]\n", "#![deny(unsafe_code)]\n");
    }),
    planted("unsafe-fence", "crates/http1/src/lib.rs", |s| {
        s.replace("crates/http1/src/lib.rs", "#![deny(unsafe_code)]\n", "");
    }),
    planted("unsafe-fence", "crates/engine/src/read.rs", |s| {
        s.append("crates/engine/src/read.rs", "#[allow(unsafe_code, reason = \"speed\")]\nmod quick {}\n");
    }),
    planted("os-conditions", FILES, |s| s.append(FILES, "#[cfg(target_os = \"linux\")]\nfn f() {}\n")),
    planted("os-conditions", FILES, |s| s.append(FILES, "#[cfg(not(unix))]\nfn f() {}\n")),
    planted("os-conditions", FILES, |s| s.append(FILES, "fn f() -> bool {\n    cfg!(windows)\n}\n")),
    planted("os-conditions", FILES, |s| {
        s.append(FILES, "#[cfg_attr(target_family = \"unix\", inline)]\nfn f() {}\n");
    }),
    planted("os-conditions", FILES_MANIFEST, |s| {
        s.append(FILES_MANIFEST, "[target.'cfg(unix)'.dependencies]\nshearwater.workspace = true\n");
    }),
    planted("hot-modules", WORKER, |s| s.append(WORKER, "use std::sync::{Arc, Mutex};\n")),
    planted("hot-modules", WORKER, |s| {
        s.append(WORKER, "static N: std::sync::atomic::AtomicU64 = zero();\n");
    }),
    planted("hot-modules", WORKER, |s| s.append(WORKER, "fn f() -> String {\n    format!(\"{}\", 1)\n}\n")),
    planted("hot-modules", WORKER, |s| s.append(WORKER, "type T = HashMap<u32, u32>;\n")),
    planted("hot-modules", WORKER, |s| {
        s.append(WORKER, "macro_rules! m {\n    () => { RwLock::new(0) };\n}\n");
    }),
    planted("hot-modules", KNOWN, |s| {
        s.append(KNOWN, "use std::sync::mpsc;\n");
    }),
    planted("hot-modules", TABLE_OF_HOT, |s| s.remove("crates/engine/src/write.rs")),
    planted("sans-io", KNOWN, |s| s.append(KNOWN, "use std::time::Duration;\n")),
    planted("sans-io", KNOWN, |s| s.append(KNOWN, "fn f() {\n    std::thread::yield_now();\n}\n")),
    planted("sans-io", KNOWN, |s| s.append(KNOWN, "use std::net::{Ipv6Addr, TcpStream};\n")),
    planted("sans-io", KNOWN, |s| s.append(KNOWN, "use std::{fmt, io::Write};\n")),
    planted("clock", FILES, |s| s.append(FILES, "fn f() -> Instant {\n    Instant::now()\n}\n")),
    planted("clock", COLD, |s| s.append(COLD, "fn f() {\n    call(std::time::SystemTime::now);\n}\n")),
    planted("file-system", COLD, |s| s.append(COLD, "use std::{fs, io};\n")),
    planted("file-system", COLD, |s| s.append(COLD, "fn f() {\n    let _ = std::fs::read(\"x\");\n}\n")),
    planted("file-system", COLD, |s| s.append(COLD, "use std::fs::{File, Metadata};\n")),
    planted("event-match", COLD, |s| s.append(COLD, "fn f(e: Event) {\n    if let Event::Woken = e {}\n}\n")),
    planted("event-match", FILES, |s| {
        s.append(FILES, "fn f(e: E) -> bool {\n    matches!(e, io::Event::Sent { .. })\n}\n");
    }),
    planted("event-match", COLD, |s| {
        s.append(COLD, "fn f(e: Option<Event>) {\n    let Some(Event::Sent(x)) = e else { return };\n}\n");
    }),
    planted("event-match", COLD, |s| s.append(COLD, "use shearwater_io::Event::{self, Woken};\n")),
    planted("event-match", COLD, |s| s.append(COLD, "use shearwater_io::{Driver, Event as Happening};\n")),
    planted("event-match", WORKER, |s| {
        s.append(
            WORKER,
            "fn more(e: Event) {\n    match e {\n        Event::Woken => (),\n        _ => (),\n    }\n}\n",
        );
    }),
    planted("framing", COLD, |s| {
        s.append(COLD, "fn f(h: Head) -> bool {\n    h.field(Known::ContentLength).is_some()\n}\n");
    }),
    planted("framing", COLD, |s| s.append(COLD, "use shearwater_http1::Known::{Host, TransferEncoding};\n")),
    planted("framing", COLD, |s| s.append(COLD, "use shearwater_http1::Known::*;\n")),
    planted("framing", COLD, |s| {
        s.append(COLD, "fn f(h: Head) {\n    h.field_named(\"Content-Length\");\n}\n");
    }),
    planted("unwinding", "Cargo.toml", |s| s.append("Cargo.toml", "[profile.small]\npanic = \"abort\"\n")),
    planted("unwinding", "Cargo.toml", |s| {
        s.replace("Cargo.toml", "[profile.release]\npanic = \"unwind\"\n", "");
    }),
    planted("unwinding", "Cargo.toml", |s| {
        s.replace("Cargo.toml", "inherits = \"release\"\npanic = \"unwind\"\n", "inherits = \"release\"\n");
    }),
    planted("unwinding", ".cargo/config.toml", |s| {
        s.put(".cargo/config.toml", "[build]\nrustflags = [\"-C\", \"panic=abort\"]\n");
    }),
];

pub(super) const HABITS: &[Planted] = &[
    planted("module-doc", FILES, |s| s.replace(FILES, "//! Static files, served.\n", "")),
    planted("module-doc", FILES, |s| s.replace(FILES, "//! Static files, served.\n", "//! F.\n")),
    planted("lengths", FILES, |s| s.append(FILES, &"\n".repeat(500))),
    planted("lengths", FILES, |s| s.append(FILES, &function_of(71))),
    planted("lengths", TESTS, |s| s.append(TESTS, &function_of(71))),
    planted("lengths", FILES, |s| {
        s.append(FILES, &function_of(80));
        s.append(RATCHET, &format!("fn {FILES}::long 79\n"));
    }),
    planted("lengths", FILES, |s| {
        s.append(FILES, &function_of(80));
        s.append(RATCHET, &format!("fn {FILES}::long 81\n"));
    }),
    planted("lengths", RATCHET, |s| s.append(RATCHET, &format!("fn {FILES}::gone 80\n"))),
    planted("lengths", RATCHET, |s| s.append(RATCHET, "anything\n")),
    planted("unwrap", FILES, |s| s.append(FILES, "fn f(x: Option<u8>) -> u8 {\n    x.unwrap()\n}\n")),
    planted("unwrap", FILES, |s| {
        s.append(FILES, "fn f(x: Vec<Option<u8>>) {\n    x.into_iter().map(Option::unwrap);\n}\n");
    }),
    planted("unwrap", FILES, |s| s.append(FILES, "fn f(x: Option<u8>) -> u8 {\n    x.expect(\"some\")\n}\n")),
    planted("unwrap", FILES, |s| {
        s.append(FILES, "fn f(x: Option<u8>) -> u8 {\n    x.expect(\n        \"some\",\n    )\n}\n");
    }),
    planted("leftovers", FILES, |s| s.append(FILES, concat!("// FIX", "ME: later\n"))),
    planted("leftovers", FILES, |s| s.append(FILES, concat!("/* one\n XX", "X\n */\n"))),
    planted("leftovers", FILES, |s| s.append(FILES, "fn f() {\n    todo!()\n}\n")),
    planted("leftovers", FILES, |s| s.append(FILES, "fn f(x: u8) -> u8 {\n    dbg!(x)\n}\n")),
    planted("leftovers", "Cargo.toml", |s| s.append("Cargo.toml", concat!("# TO", "DO: more\n"))),
    planted("ignored-tests", TESTS, |s| s.append(TESTS, "#[test]\n#[ignore]\nfn later() {}\n")),
    planted("sleeping-tests", TESTS, |s| s.append(TESTS, "fn f() {\n    std::thread::sleep(LONG);\n}\n")),
    planted("sleeping-tests", TESTS, |s| s.append(TESTS, "use std::thread::{self, sleep};\n")),
    planted("sleeping-tests", FILES, |s| {
        s.append(FILES, "#[cfg(test)]\nmod tests {\n    fn f() {\n        thread::sleep(LONG);\n    }\n}\n");
    }),
    planted("argued-allow", FILES, |s| s.append(FILES, "/// Documented.\n#[allow(dead_code)]\nfn f() {}\n")),
    planted("argued-allow", FILES, |s| s.append(FILES, "#[expect(dead_code)]\nfn f() {}\n")),
    planted("argued-allow", FILES, |s| s.append(FILES, "#[cfg_attr(test, allow(dead_code))]\nfn f() {}\n")),
];

pub(super) const PAPERS: &[Planted] = &[
    planted("limits-doc", "crates/io/src/limits.rs", |s| {
        s.append("crates/io/src/limits.rs", "/// New.\npub const TURNS_MAX: usize = 1;\n");
    }),
    planted("limits-doc", "crates/io/src/limits.rs", |s| {
        s.append(
            "crates/io/src/limits.rs",
            "/// New.\npub struct Limits {\n    /// New.\n    pub head_bytes_max: usize,\n}\n",
        );
    }),
    planted("limits-doc", LIMITS, |s| s.append(LIMITS, "| `GONE_MAX` | 1 | nothing |\n")),
    planted("limits-doc", LIMITS, |s| {
        s.remove(LIMITS);
        s.put("README.md", "# Program\n");
    }),
    planted("request-way", MAP, |s| s.append(MAP, "2. `crates/engine/src/read.rs::gone`\n")),
    planted("request-way", MAP, |s| s.append(MAP, "2. `crates/engine/src/gone.rs::received`\n")),
    planted("request-way", LIMITS, |s| s.append(LIMITS, "`crates/engine/src/read.rs::gone`\n")),
    planted("request-way", MAP, |s| s.append(MAP, "\n## Rooms\n\n`crates/gone/`\n")),
    planted("request-way", MAP, |s| s.put(MAP, "# Map\n\n## The way of a request\n\nUnknown.\n")),
    planted("request-way", MAP, |s| {
        s.put(MAP, "# Map\n\n`crates/engine/src/read.rs::received`\n");
        s.put("README.md", "# Program\n");
    }),
    planted("request-way", MAP, |s| {
        s.remove(MAP);
        s.put("README.md", "# Program\n");
    }),
    planted("links", "README.md", |s| s.append("README.md", "[gone](docs/gone.md)\n")),
    planted("links", "README.md", |s| s.append("README.md", "[gone](docs/limits.md#gone)\n")),
    planted("links", "README.md", |s| s.append("README.md", "[out](../../else.md)\n")),
    planted("links", "README.md", |s| s.append("README.md", "![`picture`](docs/gone.svg \"title\")\n")),
    planted("links", "README.md", |s| s.append("README.md", "\n[name]: docs/gone.md\n")),
    planted("machine-paths", "README.md", |s| {
        s.append("README.md", concat!("Look into /ho", "me/somebody/x.\n"));
    }),
    planted("machine-paths", FILES, |s| {
        s.append(FILES, concat!("const F: &str = \"/tmp/", "bash_jobs\";\n"));
    }),
];

/// A function of this many lines.
fn function_of(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
}
