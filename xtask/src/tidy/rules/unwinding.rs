//! Rule `unwinding`: every profile unwinds.
//!
//! A panicking handler costs one request, because the worker catches the panic. A profile that aborts turns the same
//! fault into an outage, and only in the build that users run.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::manifest::Setting;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "unwinding",
    reason: "every profile unwinds, release and dist say so: a panicking handler costs one request, not the server",
    check,
};

/// Profiles that ship, so they must say it.
const EXPLICIT: &[&str] = &["release", "dist"];

const INSTEAD: &str = "write `panic = \"unwind\"`";

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, settings) in tree.manifests("Cargo.toml").chain(tree.manifests("config.toml")) {
        let panics =
            settings.iter().filter(|setting| setting.is_under(&["profile"]) && last(setting) == "panic");
        for setting in panics.filter(|setting| setting.value != "unwind") {
            report.add(
                &file.path,
                setting.line,
                format!("a profile with panic = `{}`", setting.value),
                INSTEAD,
            );
        }
        for setting in settings.iter().filter(|setting| aborts(&setting.value)) {
            report.add(&file.path, setting.line, "a compiler flag that aborts on panic", "remove it");
        }
    }
    let Some(Ok(settings)) = tree.file("Cargo.toml").and_then(|file| file.settings.as_ref()) else { return };
    for profile in EXPLICIT {
        if !settings.iter().any(|setting| setting.path == ["profile", profile, "panic"]) {
            report.add("Cargo.toml", 1, format!("profile `{profile}` does not say that it unwinds"), INSTEAD);
        }
    }
}

fn last(setting: &Setting) -> &str {
    setting.path.last().map_or("", String::as_str)
}

fn aborts(value: &str) -> bool {
    value.replace([' ', '"', ',', '\''], "").contains("panic=abort")
}
