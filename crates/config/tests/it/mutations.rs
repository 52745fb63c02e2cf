//! Mutated files: parsing never panics, and every problem has a location in the file.

use shearwater_config::limits::PROBLEMS_MAX;
use shearwater_config::print_default;
use testkit::random::{Rng, part};

use crate::parse;

/// Fragments with a meaning in TOML or in strings.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "[", "]", "[[", "]]", "{", "}", "\"", "'", "\"\"\"", "=", ",", ".", "#", "\n", "\r\n", "\t", "\\", "${", "}", "$${SECRET}",
    "${SECRET}", "${NONE:-x}", "*", "/", "..", "0", "-1", "1e9", "0x", "99999999999999999999", "true", "site", "route", "é", "🦀", "\u{0}", "\u{feff}", "\u{7f}", "1979-05-27",
];

const VALID: &str = r#"[server]
workers = 4
driver = "epoll"
[[listen]]
address = "127.0.0.1:8080"
[[site]]
hosts = ["example.org", "*.example.org"]
root = "${DIR}"
mime = { foo = "text/x-foo" }
error_pages = { 404 = "/404.html" }
cache_control = [ { type = "text/html", value = "no-cache" }, { path = "/a/*", value = "max-age=1" } ]
headers = { set = { X-A = "é" }, remove = ["Server"] }
[[site.redirect]]
from = "/old/*"
to = "/new/{rest}"
[[site.route]]
path = "/health"
respond = { status = 200, body = "ok" }
"#;

fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Inserts, removes, replaces or copies a part.
fn mutate(text: &mut String, random: &mut Rng) {
    let at = boundary(text, random.usize(..=text.len()));
    let to = boundary(text, at + random.usize(..24)).max(at);
    match random.u8(..4) {
        0 => text.insert_str(at, PIECES[random.usize(..PIECES.len())]),
        1 => text.replace_range(at..to, ""),
        2 => text.replace_range(at..to, PIECES[random.usize(..PIECES.len())]),
        _ => {
            let piece = text[at..to].to_owned();
            let there = boundary(text, random.usize(..=text.len()));
            text.insert_str(there, &piece);
        }
    }
}

#[track_caller]
fn has_locations(text: &str, seed: u64) -> bool {
    let Err(errors) = parse(text) else { return false };
    let lines: Vec<&str> = text.split('\n').collect();
    assert!((1..=PROBLEMS_MAX).contains(&errors.problems.len()), "seed {seed}: {text:?}");
    for problem in &errors.problems {
        let line = lines.get(problem.line - 1).unwrap_or_else(|| panic!("seed {seed}: {problem:?} {text:?}"));
        assert!(
            (1..=line.chars().count() + 1).contains(&problem.column),
            "seed {seed}: {problem:?} {text:?}"
        );
        assert!(!problem.message.is_empty() && !problem.message.contains('\u{0}'), "seed {seed}: {text:?}");
    }
    let shown = errors.to_string();
    assert!(!shown.contains("hunter2") && !shown.contains('\u{1b}'), "seed {seed}: {shown}");
    true
}

#[test]
fn mutated_files_never_panic_and_problems_have_locations() {
    let default = print_default();
    let mut refused = 0;
    for seed in 1..=4000_u64 {
        let mut random = part(seed, 0);
        let mut text = if seed % 8 == 0 { default.clone() } else { VALID.to_owned() };
        for _ in 0..=random.u8(..4) {
            mutate(&mut text, &mut random);
        }
        refused += usize::from(has_locations(&text, seed));
    }
    assert!((1000..4000).contains(&refused), "{refused} of 4000 had errors");
}

#[test]
fn truncated_files_never_panic() {
    assert!(parse(VALID).is_ok());
    for end in (0..VALID.len()).filter(|&end| VALID.is_char_boundary(end)) {
        has_locations(&VALID[..end], end as u64);
    }
}
