//! Configurations as an operator writes them: what is read, what is refused and where, what is printed.

mod defaults;
mod effective;
mod meanings;
mod mutations;
mod page;
mod refusals;
mod sizes;

use shearwater_config::{Config, Errors};

/// Reads a text as `site.toml`, with the variables `SECRET`, `DIR` and `EMPTY`.
pub(crate) fn parse(text: &str) -> Result<Config, Errors> {
    Config::parse("/etc/shearwater/site.toml".as_ref(), text, |name| match name {
        "SECRET" => Some("hunter2".to_owned()),
        "DIR" => Some("public".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    })
}

/// Reads a text that is right.
#[track_caller]
pub(crate) fn right(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}
