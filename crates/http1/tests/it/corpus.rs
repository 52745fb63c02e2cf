//! The corpus: inputs with their expected results, each parsed whole, split in two at every byte, and byte by
//! byte.

use crate::corpus_format::{self, Case};
use crate::session::{Session, render};
use std::path::Path;

/// Minimum number of cases, so that a missing file is detected.
const CASES_MIN: usize = 300;
/// Longer inputs are split at a sample of offsets instead of at every byte.
const EVERY_CUT_BYTES_MAX: usize = 1024;

fn load() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let parse = |path: &std::path::PathBuf| {
        corpus_format::parse(
            path.file_stem().unwrap().to_str().unwrap(),
            &std::fs::read_to_string(path).unwrap(),
        )
    };
    files.iter().flat_map(parse).collect()
}

fn run<'a>(case: &Case, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut session = Session::new(case.head_limits, case.body_limits, case.show_fields);
    pieces.for_each(|piece| session.feed(piece));
    render(&session.finish())
}

#[test]
fn every_case_gives_the_expected_events_however_it_is_cut() {
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
fn the_corpus_is_as_large_as_promised_and_every_case_names_its_rule() {
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
fn every_reason_for_refusal_has_a_case() {
    let cases = load();
    for reject in shearwater_http1::ParseError::ALL {
        let line = format!("reject {}", reject.name());
        let has_case = cases.iter().any(|case| case.expected.contains(&line));
        assert!(has_case, "no case expects {}", reject.name());
    }
}
