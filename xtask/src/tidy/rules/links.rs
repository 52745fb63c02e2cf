//! Rule `links`: links between the project's papers lead somewhere.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::markdown::{anchors, links};
use crate::tidy::tree::{File, Tree};

pub(crate) const RULE: Rule = Rule {
    name: "links",
    reason: "links in Markdown to files and headings of this repository resolve: readers stop at the first dead one",
    check,
};

fn check(tree: &Tree, report: &mut Report<'_>) {
    for file in tree.files().filter(|file| file.extension() == "md") {
        for link in links(&file.text).iter().filter(|link| is_local(&link.text)) {
            if let Some(what) = fault(tree, file, &link.text) {
                report.add(&file.path, link.line, what, "correct or remove the link");
            }
        }
    }
}

/// No scheme such as `https:`, and no `<…>` form of one.
fn is_local(target: &str) -> bool {
    !target.contains(':') && !target.is_empty()
}

fn fault(tree: &Tree, from: &File, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if path.is_empty() { Some(from.path.clone()) } else { resolve(&from.path, path) };
    let Some(resolved) = resolved else { return Some(format!("the link `{target}` leaves the repository")) };
    if !tree.exists(&resolved) {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let text = tree.file(&resolved).map_or("", |file| file.text.as_str());
    let is_heading =
        anchor.is_empty() || !resolved.ends_with(".md") || anchors(text).iter().any(|known| known == anchor);
    (!is_heading).then(|| format!("the link `{target}` names a heading that does not exist"))
}

/// The path from the root that `target` means in the file `from`. None where it climbs out.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
