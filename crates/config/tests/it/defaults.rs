//! The default configuration and the page of the documentation.

use shearwater_config::{Config, page, print_default};

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

#[test]
fn documents_every_section() {
    let (text, page) = (print_default(), page());
    for section in ["server", "performance", "limits", "timeouts", "cache", "logging"] {
        assert!(
            text.contains(&format!("\n[{section}]\n")) && page.contains(&format!("\n## `[{section}]`\n"))
        );
    }
    for section in ["listen", "site", "site.redirect", "site.route"] {
        assert!(
            text.contains(&format!("\n#[[{section}]]\n"))
                && page.contains(&format!("\n## `[[{section}]]`\n"))
        );
    }
    for table in ["headers", "cache_control", "respond"] {
        assert!(page.contains(&format!("\n## `{table}`, an inline table\n")));
    }
    let (_, sections) = page.split_once("\n## ").expect("sections");
    assert_eq!(sections.lines().filter(|line| line.starts_with("| `")).count(), 67);
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
