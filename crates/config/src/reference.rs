//! Documentation of every key: the default configuration and the page `docs/configuration.md`.

use crate::config::Config;
use crate::context::Written;
use crate::section::{Row, Section, rows};
use crate::sections::files::{CacheControl, Serving};
use crate::sections::headers::Headers;
use crate::sections::listen::Listen;
use crate::sections::site::{Redirect, Respond, Route, Site};

/// Maximum characters of a comment line.
const LINE_CHARS: usize = 100;

const PAGE_HEAD: &str = include_str!("page_head.md");

const DEFAULT_HEAD: &str = "\
The default configuration of shearwater, with every key. `shearwater check FILE` checks a file and prints a summary; \
`shearwater config show FILE` prints it with defaults filled in. Errors are reported before the server starts.

Durations are strings with a unit (ms, s, m, h) or integers in seconds. Sizes are strings with a unit (B, KiB, MiB, \
GiB, TiB: powers of 1024; KB, MB, GB, TB: powers of 1000) or integers in bytes.

Strings may contain environment variables: ${NAME}, or ${NAME:-default} if it may be unset or empty; a literal ${ is \
written $${. Relative paths are resolved against the folder of this file. Without a [[site]], the folder `public` \
beside this file is served, or a welcome page.";

/// The documentation of one section.
pub(crate) struct Reference {
    heading: &'static str,
    means: &'static str,
    kind: Kind,
    pub(crate) keys: Vec<Key>,
}

/// How often a section can be in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Once,
    /// Any number of times; its values are examples.
    Repeated,
    /// As a value of a key of other sections.
    Inline,
}

/// The documentation of one key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    means: &'static str,
    allowed: String,
    is_required: bool,
    default: Option<String>,
    example: Option<String>,
}

/// Returns the documentation of all sections, in the order of the file.
pub(crate) fn sections() -> Vec<Reference> {
    let Config { server, performance, limits, timeouts, cache, logging, .. } = Config::default();
    let section = |heading, kind, keys| Reference { heading, means: description(heading), kind, keys };
    let of_serving = keys(&Serving::default());
    let mut of_route = keys(&Route::default());
    of_route.retain(|key| of_serving.iter().all(|shared| shared.name != key.name));
    vec![
        section("server", Kind::Once, keys(&server)),
        section("performance", Kind::Once, keys(&performance)),
        section("limits", Kind::Once, keys(&limits)),
        section("timeouts", Kind::Once, keys(&timeouts)),
        section("cache", Kind::Once, keys(&cache)),
        section("logging", Kind::Once, keys(&logging)),
        section("listen", Kind::Repeated, keys(&Listen::default())),
        section("site", Kind::Repeated, keys(&Site::default())),
        section("site.redirect", Kind::Repeated, keys(&Redirect::default())),
        section("site.route", Kind::Repeated, of_route),
        section("headers", Kind::Inline, keys(&Headers::default())),
        section("cache_control", Kind::Inline, keys(&CacheControl::default())),
        section("respond", Kind::Inline, keys(&Respond::default())),
    ]
}

/// Documents a section's keys, except tables with a heading of their own.
fn keys<T: Section>(default: &T) -> Vec<Key> {
    let written = Written::new();
    let pairs = rows(default, "", &written).into_iter().zip(rows(&T::example(), "", &written));
    let key = |(default, example): (Row, Row)| Key {
        name: default.name,
        means: default.means,
        allowed: default.allowed,
        is_required: T::REQUIRED.contains(&default.name),
        default: default.value.filter(|_| !T::REQUIRED.contains(&default.name)),
        example: example.value,
    };
    pairs.map(key).filter(|key| !key.means.starts_with("See [[")).collect()
}

fn description(heading: &str) -> &'static str {
    match heading {
        "site.redirect" => {
            "A redirect from a path or prefix of the site above. It takes precedence over a route of the same path."
        }
        "site.route" => {
            "Settings for one path or prefix of the site above. The most specific route wins, whatever the order: an exact path before a \
             prefix, a longer prefix before a shorter. Every key of [[site]] from `root` to `cache_control` can be used here and overrides \
             that of the site."
        }
        "headers" => {
            "Response headers that are set or removed. Headers that frame the message are set by the server. The response to a malformed \
             request belongs to no site: it has the server's own headers."
        }
        "cache_control" => "A rule for Cache-Control.",
        "respond" => "A fixed response without files.",
        _ => {
            let config = rows(&Config::default(), "", &Written::new());
            config.iter().find(|row| row.name == heading).map_or("", |row| row.means)
        }
    }
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
    for section in sections().iter().filter(|section| section.kind != Kind::Inline) {
        text.push('\n');
        comment(&mut text, section.means);
        match section.kind {
            Kind::Repeated => text.push_str(&format!("#[[{}]]\n", section.heading)),
            _ => text.push_str(&format!("[{}]\n", section.heading)),
        }
        for key in &section.keys {
            default_key(&mut text, section.kind, key);
        }
    }
    text
}

fn default_key(text: &mut String, kind: Kind, key: &Key) {
    let Key { name, means, allowed, is_required, default, example } = key;
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
    for section in sections() {
        let heading = match section.kind {
            Kind::Once => format!("`[{}]`", section.heading),
            Kind::Repeated => format!("`[[{}]]`", section.heading),
            Kind::Inline => format!("`{}`, an inline table", section.heading),
        };
        text.push_str(&format!("\n## {heading}\n\n{}\n\n", markdown(section.means)));
        text.push_str("| key | default | allowed | description |\n|---|---|---|---|\n");
        for key in &section.keys {
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
