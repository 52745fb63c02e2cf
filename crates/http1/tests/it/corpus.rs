//! The corpus: inputs with their expected results, each parsed whole, split in two at every byte, and byte by
//! byte. The files' format:
//!
//! ```text
//! # a comment
//! [name of the case] RFC section
//! ! head=100 target=20 fields=3 chunk-line=8 trailer=30 trailers=2 show-fields      (optional: limits, and whether to list fields)
//! > input, one line or more, joined; escapes: \r \n \t \0 \s (space) \\ \xHH and {text*count}
//! < what is expected, one event a line; see session.rs
//! ```

use crate::session::{Session, render};
use shearwater_http1::{BodyLimits, HeadLimits, ParseError};
use std::path::Path;

/// Minimum number of cases, so that a missing file is detected.
const CASES_MIN: usize = 300;
/// Longer inputs are split at a sample of offsets instead of at every byte.
const EVERY_CUT_BYTES_MAX: usize = 1024;

fn load() -> Vec<CorpusCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let parse = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        parse_file(name, &std::fs::read_to_string(path).unwrap())
    };
    files.iter().flat_map(parse).collect()
}

fn run<'a>(case: &CorpusCase, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut session = Session::new(case.head_limits, case.body_limits, case.show_fields);
    pieces.for_each(|piece| session.feed(piece));
    render(&session.finish())
}

#[test]
fn each_case_gives_the_expected_events_however_it_is_split() {
    let mut wrong = Vec::new();
    for case in load() {
        let whole = run(&case, [&case.input[..]].into_iter());
        if whole != case.expected {
            wrong.push(format!("[{}]\n  expected {:#?}\n  got {whole:#?}", case.name, case.expected));
            continue;
        }
        assert_eq!(run(&case, case.input.chunks(1)), whole, "[{}] byte by byte", case.name);
        let step = case.input.len().div_ceil(EVERY_CUT_BYTES_MAX).max(1);
        for cut in (1..case.input.len()).step_by(step) {
            let (left, right) = case.input.split_at(cut);
            assert_eq!(run(&case, [left, right].into_iter()), whole, "[{}] cut at {cut}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_is_large_and_each_case_names_its_rule() {
    let cases = load();
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    for case in &cases {
        let is_section = |word: &str| word.split('.').all(|part| part.parse::<u16>().is_ok());
        assert!(
            case.rfc.split(' ').count() == 2 && case.rfc.split(' ').all(is_section),
            "{}: {}",
            case.name,
            case.rfc
        );
        assert!(!case.expected.is_empty() && !case.input.is_empty(), "{} expects nothing", case.name);
    }
}

#[test]
fn each_parse_error_has_a_case() {
    let cases = load();
    for reject in ParseError::ALL {
        let line = format!("reject {}", reject.name());
        let has_case = cases.iter().any(|case| case.expected.contains(&line));
        assert!(has_case, "no case expects {}", reject.name());
    }
}

/// One case of the corpus.
#[derive(Debug, Default)]
struct CorpusCase {
    name: String,
    rfc: String,
    head_limits: HeadLimits,
    body_limits: BodyLimits,
    show_fields: bool,
    input: Vec<u8>,
    expected: Vec<String>,
}

/// Parses the cases of one file. Panics, with the line, if the file is malformed.
fn parse_file(file: &str, text: &str) -> Vec<CorpusCase> {
    let mut cases: Vec<CorpusCase> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let (name, rfc) = title.split_once("] ").unwrap_or_else(|| panic!("{place}: no RFC section"));
            cases.push(CorpusCase {
                name: format!("{file}: {name}"),
                rfc: rfc.to_owned(),
                ..CorpusCase::default()
            });
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("{place}: no case begins before this line"));
        match line.split_at(2) {
            ("> ", input) => case.input.extend(unescape(input, &place)),
            ("< ", expected) => case.expected.push(expected.to_owned()),
            ("! ", options) => options.split(' ').for_each(|option| set(case, option, &place)),
            _ => panic!("{place}: not a line of the format"),
        }
    }
    cases
}

fn set(case: &mut CorpusCase, option: &str, place: &str) {
    let (name, value) = option.split_once('=').unwrap_or((option, "0"));
    let number: usize = value.parse().unwrap_or_else(|_| panic!("{place}: not a number: {value}"));
    match name {
        "head" => case.head_limits.head_bytes_max = number,
        "target" => case.head_limits.target_bytes_max = number,
        "fields" => case.head_limits.fields_max = number,
        "chunk-line" => case.body_limits.chunk_line_bytes_max = number.try_into().unwrap(),
        "trailer" => case.body_limits.trailer_bytes_max = number.try_into().unwrap(),
        "trailers" => case.body_limits.trailers_max = number.try_into().unwrap(),
        "show-fields" => case.show_fields = true,
        _ => panic!("{place}: no such option: {name}"),
    }
}

fn unescape(text: &str, place: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        match next {
            '\\' => rest = unescape_one(rest, &mut bytes, place),
            '{' => {
                let (repeated, after) = rest.split_once('}').unwrap_or_else(|| panic!("{place}: no }}"));
                let (unit, count) =
                    repeated.rsplit_once('*').unwrap_or_else(|| panic!("{place}: no * in braces"));
                let count: usize = count.parse().unwrap_or_else(|_| panic!("{place}: no count in braces"));
                bytes.extend(unescape(unit, place).repeat(count));
                rest = after;
            }
            _ => bytes.extend(next.to_string().as_bytes()),
        }
    }
    bytes
}

/// Parses the text after a backslash; returns the rest.
fn unescape_one<'a>(rest: &'a str, bytes: &mut Vec<u8>, place: &str) -> &'a str {
    let byte = match rest.as_bytes().first() {
        Some(b'r') => b'\r',
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'0') => 0,
        Some(b's') => b' ',
        Some(b'\\') => b'\\',
        Some(b'x') => {
            let digits = rest.get(1..3).unwrap_or_else(|| panic!("{place}: \\x without two digits"));
            bytes.push(u8::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{place}: \\x{digits}")));
            return &rest[3..];
        }
        _ => panic!("{place}: unknown escape"),
    };
    bytes.push(byte);
    &rest[1..]
}
