//! The corpus files' format.
//!
//! ```text
//! # a comment
//! [name of the case] RFC section
//! ! head=100 target=20 fields=3 chunk-line=8 trailer=30 trailers=2 show-fields      (optional: limits, and whether to list fields)
//! > input, one line or more, joined; escapes: \r \n \t \0 \s (space) \\ \xHH and {text*count}
//! < what is expected, one event a line; see session.rs
//! ```

use shearwater_http1::{BodyLimits, HeadLimits};

/// One case of the corpus.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) rfc: String,
    pub(crate) head_limits: HeadLimits,
    pub(crate) body_limits: BodyLimits,
    pub(crate) show_fields: bool,
    pub(crate) input: Vec<u8>,
    pub(crate) expected: Vec<String>,
}

/// Parses the cases of one file. Panics, with the line, if the file is malformed.
pub(crate) fn parse(file: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let (name, rfc) = title.split_once("] ").unwrap_or_else(|| panic!("{place}: no RFC section"));
            cases.push(Case { name: format!("{file}: {name}"), rfc: rfc.to_owned(), ..Case::default() });
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

fn set(case: &mut Case, option: &str, place: &str) {
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
