//! Rule `unsafe-fence`: `unsafe` stands in named places only, and every other crate forbids it.
//!
//! Code that can break memory safety is read differently: with a safety note, under Miri or a sanitizer. That works
//! while it is little and while everybody knows where it is.

use super::Rule;
use crate::tidy::code::{Code, Kind};
use crate::tidy::finding::Report;
use crate::tidy::tree::{File, Tree};

pub(crate) const RULE: Rule = Rule {
    name: "unsafe-fence",
    reason: "unsafe code only in crates/io, crates/tasks, crates/allocator, http1's scanner, the lab's null server and testkit's allocator; all other crate roots forbid it: it must stay little and findable",
    check,
};

/// Where unsafe code may stand. The laboratory's null server ships with nothing: it measures the kernel itself.
const FENCED: &[&str] = &[
    "crates/allocator/",
    "crates/io/",
    "crates/tasks/",
    "crates/http1/src/scan",
    "lab/null/",
    "testkit/src/allocator.rs",
];

/// Test binaries that count allocations: the trait of a global allocator can only be implemented with `unsafe`.
const COUNTING_ALLOCATOR: &str = "/tests/allocations";

/// Crates of which a part is fenced: their roots deny, for a part cannot relax what its root forbids.
const PARTLY_FENCED: &[&str] = &["crates/http1/", "testkit/"];

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust() {
        let fenced = FENCED.iter().any(|place| file.path.starts_with(place));
        if fenced || file.path.contains(COUNTING_ALLOCATOR) {
            continue;
        }
        let instead = format!("write it without, or put it behind a safe interface in {}", FENCED.join(", "));
        for token in code.tokens.iter().filter(|token| token.is_ident("unsafe")) {
            report.add(&file.path, token.line, "`unsafe` outside of its fence", &*instead);
        }
        for line in relaxed(code) {
            report.add(&file.path, line, "allows `unsafe_code` outside of its fence", &*instead);
        }
        check_root(file, code, report);
    }
}

fn check_root(file: &File, code: &Code, report: &mut Report<'_>) {
    let partly = PARTLY_FENCED.iter().any(|place| file.path.starts_with(place));
    if is_root(&file.path) && !says(code, "forbid") && !(partly && says(code, "deny")) {
        let word = if partly { "deny" } else { "forbid" };
        report.add(
            &file.path,
            1,
            "a crate root without a word on unsafe code",
            format!("add `#![{word}(unsafe_code)]`"),
        );
    }
}

/// `src/lib.rs`, `src/main.rs` and `src/bin/*.rs` of any package.
fn is_root(path: &str) -> bool {
    let Some((_, inside)) = path.rsplit_once("src/") else { return false };
    inside == "lib.rs" || inside == "main.rs" || inside.starts_with("bin/")
}

/// Whether the file has the inner attribute `#![level(unsafe_code)]`.
fn says(code: &Code, level: &str) -> bool {
    code.syntax.attrs.iter().any(|attribute| {
        let lints = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident(level) && lints.is_ok_and(|lints| lints.contains("unsafe_code"))
    })
}

/// Lines of `allow(… unsafe_code …)` and its like.
fn relaxed(code: &Code) -> Vec<usize> {
    let tokens = &code.tokens;
    let relaxes = |at: &usize| ["allow", "expect", "warn"].iter().any(|word| tokens[*at].is_ident(word));
    let lists = (0..tokens.len())
        .filter(relaxes)
        .filter(|at| tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Open));
    let named =
        |at: &usize| tokens[*at..code.closing(at + 1)].iter().any(|token| token.is_ident("unsafe_code"));
    lists.filter(named).map(|at| tokens[at].line).collect()
}
