//! The text of a configuration as it is in effect: everything that it says and every default, to be read back.

use crate::config::Config;
use crate::fields::Fields;
use crate::reading::Written;
use crate::rows::{Row, rows};
use crate::sections::route::Route;
use crate::sections::site::Site;

/// The configuration as TOML that reads back as the same: defaults filled in, paths absolute, a route with what is other than
/// its site's. Variables of the environment stand in it as they were written. A path that is no UTF-8 can't be written as it is.
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
    // What a route says by itself shows beside one that says nothing.
    let silent = rows(&Route::within(&site.serving), path, &Written::new());
    for (index, route) in site.routes.iter().enumerate() {
        let mut own = rows(route, &format!("{path}.route[{index}]"), written);
        let is_other = |name: &str| {
            let value =
                |rows: &[Row]| rows.iter().find(|row| row.name == name).and_then(|row| row.value.clone());
            value(&own) != value(&silent)
        };
        // The two say one thing: what becomes of a path that isn't there.
        let falls_back_otherwise = is_other("spa") || is_other("try_files");
        let stays: Vec<bool> = own
            .iter()
            .map(|row| match row.name {
                "path" => true,
                "spa" | "try_files" => falls_back_otherwise,
                name => is_other(name),
            })
            .collect();
        let mut stays = stays.into_iter();
        own.retain(|_| stays.next().unwrap_or(true));
        section(text, "[[site.route]]", &own);
    }
}

fn each<T: Fields>(text: &mut String, heading: &str, path: &str, list: &[T], written: &Written) {
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
