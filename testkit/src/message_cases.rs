//! Documents of cases: configurations, each followed by the messages that it produces.

use std::fs;
use std::path::Path;

/// Checks the cases of a Markdown file: each block `toml` is followed by a block `text` with what `messages` returns for it.
/// With the environment variable `BLESS`, writes the messages anew instead. Returns the number of cases.
#[track_caller]
pub fn check_messages(path: impl AsRef<Path>, mut messages: impl FnMut(&str) -> String) -> usize {
    let cases = fs::read_to_string(&path).expect("the cases are readable");
    let is_blessed = std::env::var_os("BLESS").is_some();
    let (mut written, mut rest, mut count) = (String::new(), cases.as_str(), 0);
    while let Some((before, toml)) = rest.split_once("```toml\n") {
        let (toml, after) = toml.split_once("```\n").expect("a configuration is closed");
        let (between, text) = after.split_once("```text\n").expect("messages follow a configuration");
        let (expected, after) = text.split_once("```\n").expect("a block of messages is closed");
        let found = messages(toml);
        if !is_blessed {
            assert_eq!(found, expected, "{toml}");
        }
        written.push_str(&format!("{before}```toml\n{toml}```\n{between}```text\n{found}```\n"));
        rest = after;
        count += 1;
    }
    if is_blessed {
        fs::write(path, written + rest).expect("the cases are written");
    }
    count
}
