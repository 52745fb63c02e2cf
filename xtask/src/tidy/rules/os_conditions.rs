//! Rule `os-conditions`: conditions on the operating system stand in the crates that face it.
//!
//! Scattered conditions rot: the combinations that nobody builds stop compiling, or stop working. A difference between
//! systems is a function of `io` with one meaning everywhere.

use super::Rule;
use crate::tidy::code::{Code, Kind};
use crate::tidy::finding::Report;
use crate::tidy::tree::{File, Tree};

pub(crate) const RULE: Rule = Rule {
    name: "os-conditions",
    reason: "cfg on the operating system only in io and in the tests of tasks: elsewhere code means the same on every system",
    check,
};

const CONDITIONS: &[&str] =
    &["target_os", "target_family", "target_env", "target_vendor", "unix", "windows", "linux_kernel"];

const CARRIERS: &[&str] = &["cfg", "cfg_attr", "cfg_select"];

const INSTEAD: &str = "give crates/io a function with one meaning on every system";

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| !faces_the_system(file)) {
        for (line, condition) in conditions(code) {
            report.add(&file.path, line, format!("a condition on `{condition}`"), INSTEAD);
        }
    }
    for (file, settings) in tree.manifests("Cargo.toml").filter(|(file, _)| !faces_the_system(file)) {
        for setting in settings.iter().filter(|setting| setting.is_under(&["target"])) {
            report.add(&file.path, setting.line, "dependencies by target", INSTEAD);
        }
    }
}

/// Returns true for files outside of `crates/`, all of `io`, and the tests of `tasks`: how a system reports a fault on a stack differs.
fn faces_the_system(file: &File) -> bool {
    match file.room() {
        None | Some("io") => true,
        Some("tasks") => file.is_test(),
        Some(_) => false,
    }
}

fn conditions(code: &Code) -> Vec<(usize, String)> {
    let tokens = &code.tokens;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Ident || !CARRIERS.contains(&token.text.as_str()) {
            continue;
        }
        let open = if code.is_punct(at + 1, "!") { at + 2 } else { at + 1 };
        if tokens.get(open).is_none_or(|token| token.kind != Kind::Open) {
            continue;
        }
        let inside = &tokens[open..code.closing(open)];
        let named = inside
            .iter()
            .find(|token| token.kind == Kind::Ident && CONDITIONS.contains(&token.text.as_str()));
        found.extend(named.map(|condition| (condition.line, condition.text.clone())));
    }
    found
}
