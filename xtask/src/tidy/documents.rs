//! Rules `map`, `links` and `limits-page`: documents name what exists, and docs/limits.md every public limit.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::tree::{Checkout, SourceFile, line_at};
use super::{TidyFinding, TidyRule};

const MAP: &str = "ARCHITECTURE.md";
const LIMITS: &str = "docs/limits.md";
const LIMITS_PAGE: &str = "limits-page";

/// Documents of what was.
const HISTORY: &[&str] = &["CHANGELOG.md", "lab/results/"];
/// Beginnings of paths in backticks that must exist in the other documents, and their functions too.
pub(super) const FOLDERS: &[&str] = &["crates/", "xtask/", "lab/", "e2e/", "docs/", ".ci/"];
/// Heading of the section that lists a request's functions.
const SECTION: &str = "## The way of a request";

/// Public constants, and public fields of structs, in formatted code.
static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^(?:pub const|    pub) ([A-Za-z_]\w*):").expect("the pattern is constant")
});

pub(super) const RULE: TidyRule = TidyRule {
    reasons: || {
        vec![
            (
                "map",
                "paths and functions in backticks exist, those of a request in ARCHITECTURE.md first: a stale map is worse than none",
            ),
            ("links", "links in Markdown to files and headings resolve"),
            (
                LIMITS_PAGE,
                "public limits of a limits.rs are in docs/limits.md: operators look bounds up by name",
            ),
        ]
    },
    check,
};

fn check(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    check_limits(tree, findings);
    for file in current(tree) {
        for (line, span) in code_spans(&file.text) {
            if let Some(what) = missing(tree, span) {
                findings.push(TidyFinding::new(&file.path, line, "map", what, "name what took its place"));
            }
        }
    }
    let section = tree.text(MAP).split_once(SECTION).map_or("", |(_, behind)| behind);
    if !section.split("\n## ").next().is_some_and(|section| section.contains(".rs::")) {
        let what = format!("no section `{SECTION}` that lists functions");
        findings.push(TidyFinding::new(
            MAP,
            1,
            "map",
            what,
            "list them as `crates/name/src/file.rs::function`",
        ));
    }
    for file in tree.files().filter(|file| file.is_markdown()) {
        for (line, link) in links(&file.text) {
            if let Some(what) = dead(tree, &file.path, link) {
                findings.push(TidyFinding::new(
                    &file.path,
                    line,
                    "links",
                    what,
                    "correct or remove the link",
                ));
            }
        }
    }
}

/// Documents of what is.
pub(super) fn current(tree: &Checkout) -> impl Iterator<Item = &SourceFile> {
    let is_current = |file: &&SourceFile| !HISTORY.iter().any(|history| file.path.starts_with(history));
    tree.files().filter(|file| file.is_markdown()).filter(is_current)
}

/// Checks `path` or `path::function`, or `path::Type::function`.
fn missing(tree: &Checkout, span: &str) -> Option<String> {
    if !FOLDERS.iter().any(|folder| span.starts_with(folder)) || span.contains(['*', '{', '<', '…', ' ']) {
        return None;
    }
    let (path, function) = span.split_once("::").unwrap_or((span, ""));
    let name = function.rsplit("::").next().unwrap_or_default().trim_end_matches("()");
    let code = tree.file(path).map_or("", |file| &file.code);
    let has = |end: &str| code.contains(&format!("fn {name}{end}"));
    if !tree.exists(path) {
        Some(format!("`{path}` does not exist"))
    } else if !name.is_empty() && !has("(") && !has("<") {
        Some(format!("`{path}` has no function `{function}`"))
    } else {
        None
    }
}

/// Checks a link to a file or heading of the checkout.
fn dead(tree: &Checkout, from: &str, link: &str) -> Option<String> {
    if link.contains(':') || link.is_empty() {
        return None;
    }
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut parts: Vec<&str> = from.split('/').collect();
    if !target.is_empty() {
        parts.pop();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Some(format!("the link `{link}` leaves the checkout")),
            ".." => {}
            _ => parts.push(part),
        }
    }
    let path = parts.join("/");
    if !tree.exists(&path) {
        return Some(format!("the link `{link}` leads nowhere"));
    }
    let has_anchor =
        anchor.is_empty() || !path.ends_with(".md") || anchors(tree.text(&path)).any(|known| known == anchor);
    (!has_anchor).then(|| format!("the link `{link}` names a heading that does not exist"))
}

/// Lines of Markdown outside of fenced blocks, counted from 1.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((number, line))
    })
}

/// Texts in backticks, with their lines.
pub(super) fn code_spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose_lines(text)
        .flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |span| (number, span)))
}

/// Targets of links and images, and of `[name]: target`, with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose_lines(text).flat_map(|(number, line)| {
        let inline = line.split('`').step_by(2).flat_map(|part| part.split("](").skip(1));
        let inline = inline.filter_map(|rest| rest.split([')', ' ']).next());
        let defined =
            line.starts_with('[').then(|| line.split_once("]: ")).flatten().map(|(_, target)| target.trim());
        inline.chain(defined).map(move |target| (number, target))
    })
}

/// Headings as anchors.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = prose_lines(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| {
        let kept = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    })
}

fn check_limits(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    let page = tree.text(LIMITS);
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let crates = tree.files().filter(|file| file.room().is_some());
    for file in crates.filter(|file| file.path.ends_with("/limits.rs") && file.is_shipped()) {
        for limit in
            LIMIT.captures_iter(&file.code).map(|found| found.get(1).expect("the pattern has a group"))
        {
            let line = line_at(&file.code, limit.start());
            if !words.contains(limit.as_str()) && !file.is_test(line) {
                let what = format!("`{}` is not in {LIMITS}", limit.as_str());
                findings.push(TidyFinding::new(
                    &file.path,
                    line,
                    LIMITS_PAGE,
                    what,
                    "add its default and its effect",
                ));
            }
        }
    }
}
