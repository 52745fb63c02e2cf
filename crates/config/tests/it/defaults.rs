//! The text of the defaults says what is so anyway, and has every key.

use shearwater_config::{
    Cache, Config, Limits, Listen, Logging, Performance, Redirect, Respond, Route, Server, Serving, Site,
    Timeouts,
};
use shearwater_config::{CacheControl, Headers, page, print_default};

use crate::right;

#[test]
fn what_is_printed_as_default_is_the_default() {
    assert_eq!(right(&print_default()), Config::default());
}

#[test]
fn what_is_commented_out_may_stand_there() {
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

/// The names of a struct's fields, as its `Debug` has them.
fn fields(value: &dyn std::fmt::Debug) -> Vec<String> {
    let text = format!("{value:#?}");
    let is_own = |line: &&str| line.starts_with("    ") && !line.starts_with("     ") && line.contains(": ");
    let name = |line: &str| line.trim_start().split(':').next().unwrap_or("").to_owned();
    text.lines().filter(is_own).map(name).collect()
}

#[test]
fn every_field_is_a_key_that_is_printed_and_on_the_page() {
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
                // Their own fields are looked for each by itself.
                "serving" => continue,
                field => field,
            };
            assert!(text.contains(key), "{key} of {value:?} is not printed");
            assert!(
                page.contains(&format!("`{key}`")) || page.contains(&format!("[{key}]")),
                "{key} of {value:?} is not on the page"
            );
        }
    }
    assert_eq!(fields(&CacheControl::default()), ["media_type", "path", "value"]);
}

#[test]
fn lines_are_short_enough_for_a_terminal() {
    for line in print_default().lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
