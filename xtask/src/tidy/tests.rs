//! Tests of the rules: each finds what is planted into a clean tree, and nothing else does.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use super::tree::Checkout;
use super::words::prose_hits;
use super::{RULES, TidyFinding, check};

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

/// Violations, and texts that resemble one.
#[derive(Deserialize)]
struct Planted {
    /// A rule, the file in which it must find something, and the text that is appended to that file.
    planted: Vec<[String; 3]>,
    /// A file and what is appended to it.
    allowed: Vec<[String; 2]>,
}

static PLANTED: LazyLock<Planted> =
    LazyLock::new(|| toml::from_str(include_str!("../../planted.toml")).expect("the file is well-formed"));

/// A tree without findings: a crate's files, or else what the tables of the rules name.
fn clean() -> Checkout {
    let mut tree = Checkout::default();
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

fn check_with(path: &str, appended: &str) -> Vec<TidyFinding> {
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
    for [rule, path, text] in &PLANTED.planted {
        let found = check_with(path, text);
        let is_right = |finding: &TidyFinding| finding.rule == rule && finding.path == *path;
        assert!(!found.is_empty() && found.iter().all(is_right), "{rule}: {text}: {found:#?}");
    }
}

#[test]
fn each_rule_has_a_planted_violation() {
    let planted: BTreeSet<&str> = PLANTED.planted.iter().map(|[rule, ..]| rule.as_str()).collect();
    let rules: BTreeSet<&str> =
        RULES.iter().flat_map(|rule| (rule.reasons)()).map(|(name, _)| name).collect();
    assert_eq!(rules, planted);
}

#[test]
fn passes_what_resembles_a_violation() {
    for [path, text] in &PLANTED.allowed {
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
fn finds_foreign_names_that_no_document_has() {
    let mut tree = clean();
    tree.put("xtask/tidy.toml", String::new());
    let found = check(&tree);
    assert!(!found.is_empty() && found.iter().all(|finding| finding.rule == "names"), "{found:#?}");
    tree.put(README, "# Program\n\n`RESOLVE_CACHE\u{44}`\n".to_owned());
    assert_eq!(check(&tree).len(), found.len() - 1);
}

#[test]
fn prose_passes_up_to_its_ceiling() {
    let mut tree = clean();
    tree.put(README, "# Program\n\nThe answer is told what an answer is.\n".to_owned());
    tree.put("xtask/prose.toml", "\"README.md\" = 2\n\"gone\" = 1\n".to_owned());
    let found: Vec<String> = check(&tree).iter().map(|finding| finding.what.clone()).collect();
    assert_eq!(found, ["3 hits in README.md, the ceiling is 2", "`gone` does not exist"]);
    assert_eq!(prose_hits(&tree, "README.md").len(), 3);
    tree.put("xtask/prose.toml", "\"README.md\" = 3\n".to_owned());
    assert_eq!(check(&tree), []);
}
