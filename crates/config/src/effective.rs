//! Prints a configuration with all defaults filled in.

use crate::config::Config;
use crate::context::Written;
use crate::section::{Row, Section, rows};
use crate::sections::site::{Route, Site};

/// Prints a configuration as TOML that parses to the same: defaults filled in, paths absolute, routes without inherited keys.
/// Environment variables are printed as written. A path that isn't UTF-8 is printed lossily.
#[must_use]
pub fn print_effective(config: &Config) -> String {
    let written = &config.origin.written;
    let mut text = String::new();
    section(&mut text, "[server]", &rows(&config.server, "server", written));
    section(&mut text, "[performance]", &rows(&config.performance, "performance", written));
    section(&mut text, "[limits]", &rows(&config.limits, "limits", written));
    section(&mut text, "[timeouts]", &rows(&config.timeouts, "timeouts", written));
    section(&mut text, "[cache]", &rows(&config.cache, "cache", written));
    section(&mut text, "[logging]", &rows(&config.logging, "logging", written));
    each(&mut text, "listen", "listen", &config.listen, written);
    for (index, of_site) in config.sites.iter().enumerate() {
        site(&mut text, &format!("site[{index}]"), of_site, written);
    }
    text
}

fn site(text: &mut String, path: &str, site: &Site, written: &Written) {
    section(text, "[[site]]", &rows(site, path, written));
    each(text, "site.redirect", &format!("{path}.redirect"), &site.redirects, written);
    // A route's own keys are those that differ from an empty route.
    let inherited = rows(&Route::within(&site.serving), path, &Written::new());
    for (index, route) in site.routes.iter().enumerate() {
        let own = rows(route, &format!("{path}.route[{index}]"), written);
        let is_other = |name: &str| {
            let value =
                |rows: &[Row]| rows.iter().find(|row| row.name == name).and_then(|row| row.value.clone());
            value(&own) != value(&inherited)
        };
        // These exclude each other: one of them alone would change the other.
        let has_own_fallback = is_other("spa") || is_other("try_files");
        let is_own = |row: &&Row| match row.name {
            "path" => true,
            "spa" | "try_files" => has_own_fallback,
            name => is_other(name),
        };
        let printed: Vec<Row> = own.iter().filter(is_own).cloned().collect();
        section(text, "[[site.route]]", &printed);
    }
}

fn each<T: Section>(text: &mut String, heading: &str, path: &str, list: &[T], written: &Written) {
    for (index, element) in list.iter().enumerate() {
        section(text, &format!("[[{heading}]]"), &rows(element, &format!("{path}[{index}]"), written));
    }
}

fn section(text: &mut String, heading: &str, rows: &[Row]) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("{heading}\n"));
    for row in rows {
        if let Some(value) = &row.shown {
            text.push_str(&format!("{} = {value}\n", row.name));
        }
    }
}
