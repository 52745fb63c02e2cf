//! The page of the documentation, `docs/configuration.md`.

use crate::manual::{Key, Kind, Section, sections};

const HEAD: &str = include_str!("page_head.md");

/// The page on every key. A test holds `docs/configuration.md` against it; `cargo run -p shearwater-config --example page` prints it.
#[must_use]
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    for section in sections() {
        text.push_str(&format!("\n## {}\n\n{}\n\n", heading(&section), section.means));
        text.push_str("| key | default | allowed | what it means |\n|---|---|---|---|\n");
        for key in &section.keys {
            text.push_str(&row(key));
        }
    }
    text
}

fn heading(section: &Section) -> String {
    match section.kind {
        Kind::Once => format!("`[{}]`", section.heading),
        Kind::Often => format!("`[[{}]]`", section.heading),
        Kind::Inside => format!("`{}`, a table as a value", section.heading),
    }
}

fn row(key: &Key) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let default = match &key.default {
        Some(default) => format!("`{}`", cell(default)),
        None if key.is_required => "has to be there".to_owned(),
        None => "none".to_owned(),
    };
    format!("| `{}` | {default} | {} | {} |\n", key.name, cell(&key.allowed), cell(key.means))
}
