//! Prints the configuration in effect, the default configuration and the page `docs/configuration.md`.

use crate::config::{Config, tables};
use crate::context::KeyPath;
use crate::section::{Description, Key, Kind, print_tables};

/// Maximum characters of a comment line.
const LINE_CHARS: usize = 100;

const PAGE_HEAD: &str = include_str!("page_head.md");

pub(crate) const DEFAULT_HEAD: &str = "\
The default configuration of shearwater, with every key. `shearwater check FILE` checks a file and prints a summary; \
`shearwater config show FILE` prints it with defaults filled in. Errors are reported before the server starts.

Durations are strings with a unit (ms, s, m, h) or integers in seconds. Sizes are strings with a unit (B, KiB, MiB, \
GiB, TiB: powers of 1024; KB, MB, GB, TB: powers of 1000) or integers in bytes.

Strings may contain environment variables: ${NAME}, or ${NAME:-default} if it may be unset or empty; a literal ${ is \
written $${. Relative paths are resolved against the folder of this file. Without a [[site]], the folder `public` \
beside this file is served, or a welcome page.";

/// Prints a configuration as TOML that parses to the same: defaults filled in, paths absolute, routes without inherited keys.
/// Environment variables are printed as written. A path that isn't UTF-8 is printed lossily.
#[must_use]
pub fn print_effective(config: &Config) -> String {
    let mut text = String::new();
    print_tables(config, "", &KeyPath::root(&config.written), &mut text);
    text
}

/// Prints a configuration that has every key with its default and description. Keys without a default, and sections that can be
/// repeated, are commented out without a space after the `#`.
#[must_use]
pub fn print_default() -> String {
    let mut text = String::new();
    for (index, paragraph) in DEFAULT_HEAD.split("\n\n").enumerate() {
        text.push_str(if index > 0 { "#\n" } else { "" });
        comment(&mut text, paragraph);
    }
    for table in tables().iter().filter(|table| table.kind != Kind::Inline) {
        text.push('\n');
        comment(&mut text, table.means);
        let hash = if table.kind == Kind::Repeated { "#" } else { "" };
        text.push_str(&format!("{hash}{}\n", table.kind.heading(&table.heading)));
        for key in table.keys.iter().filter(|key| !key.has_heading) {
            default_key(&mut text, table.kind, key);
        }
    }
    text
}

fn default_key(text: &mut String, kind: Kind, key: &Key) {
    let Key { name, means, allowed, is_required, default, example, .. } = key;
    text.push('\n');
    comment(text, means);
    if let (Kind::Once, Some(default)) = (kind, default) {
        comment(text, &format!("Allowed: {allowed}."));
        text.push_str(&format!("{name} = {default}\n"));
        return;
    }
    let default = match default {
        Some(default) => format!(" Default: {default}."),
        None if *is_required => " Required.".to_owned(),
        None => String::new(),
    };
    comment(text, &format!("Allowed: {allowed}.{default}"));
    if let Some(example) = example {
        text.push_str(&format!("#{name} = {example}\n"));
    }
}

/// Appends a paragraph as comment lines.
fn comment(text: &mut String, paragraph: &str) {
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() + 3 > LINE_CHARS {
            text.push_str(&format!("# {line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&format!("# {line}\n"));
}

/// Returns the page `docs/configuration.md`. `cargo run -p shearwater-config --example page` prints it.
#[must_use]
pub fn page() -> String {
    let mut text = PAGE_HEAD.to_owned();
    for Description { kind, heading, means, keys } in tables() {
        let inline = if *kind == Kind::Inline { ", an inline table" } else { "" };
        text.push_str(&format!("\n## `{}`{inline}\n\n{}\n\n", kind.heading(heading), markdown(means)));
        text.push_str("| key | default | allowed | description |\n|---|---|---|---|\n");
        for key in keys.iter().filter(|key| !key.has_heading) {
            let default = match &key.default {
                Some(default) => format!("`{}`", default.replace('|', "\\|")),
                None if key.is_required => "required".to_owned(),
                None => "none".to_owned(),
            };
            let (allowed, means) = (markdown(&key.allowed), markdown(key.means));
            text.push_str(&format!("| `{}` | {default} | {allowed} | {means} |\n", key.name));
        }
    }
    text
}

/// Escapes bars, and stars outside of code.
fn markdown(text: &str) -> String {
    let parts = text.replace('|', "\\|");
    let parts = parts.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => part.replace('*', "\\*"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use crate::config::tables;
    use crate::unknown::unsupported;

    #[test]
    fn recognises_no_key_of_ours() {
        for key in tables().iter().flat_map(|table| &table.keys) {
            assert_eq!(unsupported(key.name), None, "{}", key.name);
        }
    }
}
