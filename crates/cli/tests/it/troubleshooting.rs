//! `docs/tasks/troubleshooting.md`: each message in its tables is one that the code writes, and each test exists.

use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the text of all source files beneath a folder, with string literals in one line.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, text);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&entry).expect("UTF-8");
            let mut lines = source.lines().peekable();
            while let Some(line) = lines.next() {
                // A backslash at the end continues a string.
                match line.strip_suffix('\\') {
                    Some(begun) => text.push_str(begun),
                    None => text.push_str(line),
                }
                let is_continued = line.ends_with('\\');
                if !is_continued {
                    text.push('\n');
                } else if let Some(next) = lines.next() {
                    text.push_str(next.trim_start());
                    text.push('\n');
                }
            }
        }
    }
}

fn of_crates() -> String {
    let mut text = String::new();
    for entry in fs::read_dir(Path::new(ROOT).join("crates")).expect("the crates") {
        sources(&entry.expect("an entry").path().join("src"), &mut text);
    }
    text
}

/// Returns the first cells of the page's rows.
fn messages(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_message_of_the_page_is_in_the_code() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/tasks/troubleshooting.md")).expect("a page");
    let messages = messages(&page);
    assert!(messages.len() > 20, "{messages:?}");
    let code = of_crates();
    for message in messages {
        // What differs from message to message is shown as `…`.
        let wrong: Vec<_> =
            message.split('\u{2026}').map(str::trim).filter(|part| !code.contains(part)).collect();
        assert!(wrong.is_empty(), "`{message}`: not in the code: {wrong:?}");
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/tasks/troubleshooting.md")).expect("a page");
    let mut named = 0;
    for path in page.split('`').filter(|text| text.starts_with("crates/") && text.contains("::")) {
        let (file, name) = path.split_once("::").expect("a name");
        let source = fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_default();
        assert!(source.contains(&format!("fn {name}(")), "{path}");
        named += 1;
    }
    assert!(named >= 7, "{named}");
}
