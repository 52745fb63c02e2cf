//! The default configuration and the page of the documentation.

use shearwater_config::{
    Cache, Config, Limits, Listen, Logging, Performance, Redirect, Respond, Route, Server, Serving, Site,
    Timeouts,
};
use shearwater_config::{CacheControl, Headers, page, print_default};

use crate::right;

#[test]
fn parses_the_default_configuration_to_the_defaults() {
    assert_eq!(right(&print_default()), Config::default());
}

#[test]
fn parses_commented_keys() {
    let text = print_default();
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') && !key.is_empty() => key,
            _ => line,
        })
        .collect();
    let config = right(&uncommented.join("\n"));
    assert_eq!((config.listen.len(), config.sites.len()), (1, 1));
    assert_eq!((config.sites[0].redirects.len(), config.sites[0].routes.len()), (1, 1));
    assert_eq!(config.server.http_port, Some(8080));
}

/// Returns the names of a struct's fields from its `Debug` output.
fn fields(value: &dyn std::fmt::Debug) -> Vec<String> {
    let text = format!("{value:#?}");
    let is_own = |line: &&str| line.starts_with("    ") && !line.starts_with("     ") && line.contains(": ");
    let name = |line: &str| line.trim_start().split(':').next().unwrap_or("").to_owned();
    text.lines().filter(is_own).map(name).collect()
}

#[test]
fn documents_every_key() {
    let values: [(&dyn std::fmt::Debug, usize); 13] = [
        (&Server::default(), 11),
        (&Performance::default(), 5),
        (&Limits::default(), 10),
        (&Timeouts::default(), 6),
        (&Cache::default(), 4),
        (&Logging::default(), 1),
        (&Listen::default(), 2),
        (&Site::default(), 5),
        (&Serving::default(), 12),
        (&Redirect::default(), 3),
        (&Route::default(), 4),
        (&Headers::default(), 2),
        (&Respond::default(), 3),
    ];
    let (text, page) = (print_default(), page());
    for (value, count) in values {
        let fields = fields(value);
        assert_eq!(fields.len(), count, "{value:?}");
        for field in fields {
            let key = match field.as_str() {
                "media_type" => "type",
                "redirects" => "[site.redirect]",
                "routes" => "[site.route]",
                // Its fields are keys of their own.
                "serving" => continue,
                field => field,
            };
            assert!(text.contains(key), "{key} of {value:?} is not in the default configuration");
            assert!(
                page.contains(&format!("`{key}`")) || page.contains(&format!("[{key}]")),
                "{key} of {value:?} is not on the page"
            );
        }
    }
    assert_eq!(fields(&CacheControl::default()), ["media_type", "path", "value"]);
}

#[test]
fn wraps_lines_at_100_characters() {
    for line in print_default().lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_page_is_up_to_date() {
    let file = include_str!("../../../../docs/configuration.md");
    assert!(file == page(), "run cargo run -p shearwater-config --example page > docs/configuration.md");
}
