//! The corpus of the engine's parser: no rung crashes on it, and none accepts what must be refused.

use std::fs;
use std::path::Path;

use testkit::{Client, TestClient};

use crate::on_rungs;

/// Refusals of the engine that are stricter than the ladder: it doesn't read a host's name and has no limit of its own for
/// fields and methods.
const NOT_REFUSED: &[&str] = &["InvalidHost", "TooManyFields", "MethodTooLong"];

struct CorpusCase {
    name: String,
    input: Vec<u8>,
    /// The first event that the engine's parser reports.
    expected: String,
    has_limits: bool,
}

#[test]
fn rungs_survive_the_corpus_and_refuse_what_the_engine_refuses() {
    let cases = load();
    assert!(cases.len() >= 300, "{} cases", cases.len());
    on_rungs(1, |rung, address| {
        for case in &cases {
            let mut client = Client::connect(address).expect("the rung accepts");
            // The rung may have responded and closed before it has all.
            drop(client.send(&case.input));
            drop(client.finish_sending());
            let status = client.response().map_or(0, |response| response.status());
            let refusal = case.expected.strip_prefix("reject ");
            if refusal.is_some_and(|reason| !case.has_limits && !NOT_REFUSED.contains(&reason)) {
                assert!(status == 0 || status >= 400, "rung {rung}, [{}]: status {status}", case.name);
            }
        }
        assert_eq!(TestClient::connect(address).get("/").status, 200);
    });
}

fn load() -> Vec<CorpusCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/http1/tests/corpus");
    let mut cases: Vec<CorpusCase> = Vec::new();
    for entry in fs::read_dir(folder).expect("the corpus") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[') {
                let (name, expected) = (name.to_owned(), String::new());
                cases.push(CorpusCase { name, input: Vec::new(), expected, has_limits: false });
            }
            let Some(case) = cases.last_mut() else { continue };
            match line.get(..2) {
                Some("> ") => case.input.extend(unescape(&line[2..])),
                Some("< ") if case.expected.is_empty() => line[2..].clone_into(&mut case.expected),
                Some("! ") => case.has_limits |= line != "! show-fields",
                _ => {}
            }
        }
    }
    cases
}

/// Decodes `\r`, `\n`, `\t`, `\0`, `\s` (space), `\\`, `\xHH` and `{text*count}`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        if next == '{' {
            let (repeated, after) = rest.split_once('}').expect("a closing brace");
            let (unit, count) = repeated.rsplit_once('*').expect("a count");
            bytes.extend(unescape(unit).repeat(count.parse().expect("a number")));
            rest = after;
        } else if next == '\\' {
            let digits = if rest.starts_with('x') { 3 } else { 1 };
            let (code, after) = rest.split_at(digits);
            bytes.push(match code {
                "r" => b'\r',
                "n" => b'\n',
                "t" => b'\t',
                "0" => 0,
                "s" => b' ',
                "\\" => b'\\',
                _ => u8::from_str_radix(&code[1..], 16).expect("two digits"),
            });
            rest = after;
        } else {
            bytes.extend(next.to_string().as_bytes());
        }
    }
    bytes
}
