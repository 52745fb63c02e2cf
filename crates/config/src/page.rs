//! The page of the documentation, `docs/configuration.md`.

use crate::manual::{Key, Kind, Section, sections};

const HEAD: &str = include_str!("page_head.md");

/// The page on every key. A test holds `docs/configuration.md` against it; `cargo run -p shearwater-config --example page` prints it.
#[must_use]
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    for section in sections() {
        text.push_str(&format!("\n## {}\n\n{}\n\n", heading(&section), plain(section.means)));
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
    let default = match &key.default {
        Some(default) => format!("`{}`", default.replace('|', "\\|")),
        None if key.is_required => "has to be there".to_owned(),
        None => "none".to_owned(),
    };
    format!("| `{}` | {default} | {} | {} |\n", key.name, plain(&key.allowed), plain(key.means))
}

/// Text for a cell or a paragraph: bars and stars, which no code in it has, are themselves.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}
