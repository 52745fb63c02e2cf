//! Configurations as an operator writes them: values, messages, output.

mod messages;
mod mutations;
mod printed;
mod sizes;
mod values;

use shearwater_config::{Config, Diagnostics, Findings};

/// Parses a text as `site.toml`, with the variables `SECRET`, `DIR` and `EMPTY`.
pub(crate) fn parse(text: &str) -> Result<Config, Diagnostics> {
    let environment = |name: &str| match name {
        "SECRET" => Some("hunter2".to_owned()),
        "DIR" => Some("public".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let file = "/etc/shearwater/site.toml".as_ref();
    Config::parse(file, text, environment, |_| Findings::default()).map(|(config, _)| config)
}

/// Parses a valid text.
#[track_caller]
pub(crate) fn right(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}
