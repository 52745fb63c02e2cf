//! The seeds: for each target a few small inputs that together reach every kind of outcome. Those of the parser and of bodies come
//! from the corpus of `http1`: for each kind the shortest case that ends so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::corpus_format::{self, Case};
use crate::input::{DEFAULT, STAGE};
use shearwater_http1::{BodyLimits, HeadLimits};

/// A seed: its file's name and its bytes.
pub type Seed = (String, Vec<u8>);

/// Begins the names of inputs that were found to break something: they are kept by hand.
pub const FOUND: &str = "found-";

/// The folder of the seeds of all targets.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds")
}

/// The seeds of the target called `name`, made anew. None for an unknown one.
///
/// # Panics
/// Where the corpus can't be read.
#[must_use]
pub fn of(name: &str) -> Vec<Seed> {
    match name {
        "parser" => parser(&corpus()),
        "chunked" => chunked(&corpus()),
        "target" => target(),
        "ranges" => numbered(RANGES.iter().map(|(len, value)| [&[*len], value.as_bytes()].concat())),
        "negotiation" => {
            numbered(SAID_OF_FORMS.iter().map(|(choice, text)| [&[*choice], text.as_bytes()].concat()))
        }
        "engine" => engine(&corpus()),
        _ => Vec::new(),
    }
}

fn corpus() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/http1/tests/corpus");
    let entries = std::fs::read_dir(&folder).expect("the corpus of http1 is part of the checkout");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("the corpus is text");
        corpus_format::parse(&path.display().to_string(), &text)
    };
    files.iter().flat_map(read).collect()
}

/// What a case shows: the reason for its refusal; or the version and the marks of its first head, and how the body behind it ends.
fn kind(case: &Case) -> String {
    let last = case.expected.last().map_or("", String::as_str);
    if let Some(reason) = last.strip_prefix("reject ") {
        return format!("reject-{}", reason.to_lowercase());
    }
    // A head's line has method, target, version, then marks such as `host=a` and `close`.
    let marks = case.expected.iter().find_map(|line| line.split_once(" 1.")).map_or("", |(_, marks)| marks);
    let names = marks.split(' ').map(|mark| mark.split('=').next().unwrap_or(mark));
    let end = if matches!(last, "end" | "partial") { last } else { "" };
    let words: Vec<&str> =
        names.filter(|name| *name != "host").chain([end]).filter(|word| !word.is_empty()).collect();
    format!("accept-{}", words.join("-"))
}

/// The shortest input of each kind, in the order of kinds.
fn shortest_of_each(inputs: impl Iterator<Item = Seed>) -> Vec<Seed> {
    let mut kinds: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (kind, input) in inputs {
        let place = kinds.entry(kind).or_insert_with(|| input.clone());
        if input.len() < place.len() {
            *place = input;
        }
    }
    kinds.into_iter().collect()
}

fn numbered(inputs: impl Iterator<Item = Vec<u8>>) -> Vec<Seed> {
    inputs.enumerate().map(|(number, input)| (format!("{number:02}"), input)).collect()
}

/// The stage that sets the limits of `case`.
fn stage(case: &Case) -> Vec<u8> {
    let (head, body) = (case.head_limits, case.body_limits);
    let (usual_head, usual_body) = (HeadLimits::default(), BodyLimits::default());
    let byte = |limit: usize, usual: usize| if limit == usual { DEFAULT } else { limit.min(255) as u8 };
    let mut stage = STAGE.to_vec();
    stage[0] = byte(head.head_bytes_max / 2, usual_head.head_bytes_max / 2);
    stage[1] = byte(head.target_bytes_max, usual_head.target_bytes_max);
    stage[2] = byte(head.fields_max, usual_head.fields_max);
    stage[3] = byte(usize::from(body.chunk_line_bytes_max), usize::from(usual_body.chunk_line_bytes_max));
    stage[4] = byte(body.trailer_bytes_max as usize, usual_body.trailer_bytes_max as usize);
    stage[5] = byte(usize::from(body.trailers_max), usize::from(usual_body.trailers_max));
    stage
}

/// Inputs longer than this teach a fuzzer nothing that shorter ones don't.
const SEED_BYTES_MAX: usize = 600;

fn parser(corpus: &[Case]) -> Vec<Seed> {
    let seed = |case: &Case| (kind(case), [stage(case), case.input.clone()].concat());
    shortest_of_each(corpus.iter().map(seed).filter(|(_, input)| input.len() <= SEED_BYTES_MAX))
}

/// What follows the first head, of cases that have chunks.
fn chunked(corpus: &[Case]) -> Vec<Seed> {
    let is_chunked = |case: &&Case| case.expected.first().is_some_and(|line| line.ends_with(" chunked"));
    let body = |case: &Case| {
        let head_len = case.input.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        Some((kind(case), [&stage(case), &[DEFAULT][..], &case.input[head_len..]].concat()))
    };
    let by_length = [("length".to_owned(), [&STAGE[..], b"\x05hello, next"].concat())];
    let bodies = corpus.iter().filter(is_chunked).filter_map(body).chain(by_length);
    shortest_of_each(bodies.filter(|(_, input)| input.len() <= SEED_BYTES_MAX))
}

/// Methods by their number in the target, and request targets.
const TARGETS: &[(u8, &str)] = &[
    (0, "/"),
    (0, "/a/b.txt?c=d"),
    (0, "//a///b/"),
    (0, "/%e4%BD%a0/%2561"),
    (0, "/a/../../etc/passwd"),
    (0, "/%2e%2e/.%2E/%2e"),
    (0, "/..%2f..%2fetc"),
    (0, "/a%00.html"),
    (0, "/%4"),
    (0, "/%zz"),
    (0, "/.../..a"),
    (0, "http://example.org:80/a?b"),
    (0, "http://[::1]"),
    (1, "*"),
    (1, "http://example.org"),
    (2, "example.org:443"),
    (2, "[v1.a:b]:1"),
];

fn target() -> Vec<Seed> {
    numbered(TARGETS.iter().map(|(method, target)| [&[*method], target.as_bytes()].concat()))
}

/// A file's length, or the number of a large one, and a `Range`.
const RANGES: &[(u8, &str)] = &[
    (100, "bytes=0-0"),
    (100, "bytes=10-"),
    (100, "bytes=-10"),
    (100, "bytes=-0"),
    (100, "bytes=100-"),
    (100, "bytes=0-10,5-20"),
    (100, "bytes=50-60, 0-10,,5-55"),
    (100, "bytes=90-,-5, 1-1"),
    (100, "bytes=2-1"),
    (100, "lines=0-1"),
    (0, "bytes=0-"),
    (0xFF, "bytes=18446744073709551614-18446744073709551615"),
    (0xFF, "bytes=-99999999999999999999999"),
    (0xFD, "BYTES=0-9223372036854775807"),
];

/// Which codings there are and in which order, and what is said of codings or tags; a line end stands between two fields.
const SAID_OF_FORMS: &[(u8, &str)] = &[
    (0x07, "gzip, deflate, br, zstd"),
    (0x07, "br;q=0.5,gzip;q=0.8, zstd;q=0.801"),
    (0x05, "*;q=0.1, identity;q=0.5"),
    (0x1f, "gzip;q=0, *"),
    (0x2f, "x-gzip;Q=1.000\nbr"),
    (0x06, "br;q=2, gzip;q=0.1234, zstd;q=, identity;q=0"),
    (0x3c, ",, ,gzip ;\tq=0.001,"),
    (0x00, "\"tag\""),
    (0x00, "*"),
    (0x00, " \"x\", W/\"tag\" ,\t\"tag\""),
    (0x00, "W/\"a,b\",,\"\""),
    (0x00, "\"tag\" x \"tag\"\nw/\"tag\""),
    (0x00, "\"tag"),
];

/// What a client may say to the engine's test app so that each of its routes is asked in some way.
const SAID: &[&str] = &[
    "POST /buffer/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /sink/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nX: y\r\n\r\nGET /empty HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /buffer/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello, and more than that, of which nobody knows what it is",
    "POST /sink-refuses HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345",
    "POST /sink-panics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "POST /sink-ends-in-panic HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /half-panic HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /close HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /panic HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /1 HTTP/1.1\r\nHost: a\r\nExpect: what\r\n\r\n",
    "POST /buffer/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\nhello",
    "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// The beginnings of programs: a kind kernel, a rough one, and one that moves few bytes at once, all with a client that sends at once.
const TEMPERS: [&[u8]; 3] = [&[], &[7, 1, 2, 1], &[9, 0, 1, 2, 0, 1, 0, 0, 0, 1]];
/// Choices of a program before the first client's steps.
const CHOICES_BEFORE_STEPS: usize = 16;
/// A choice that, wherever it is read, makes a piece of 17 bytes with all that the worker can do behind it, and no end before the last.
const IN_PIECES: u8 = 16;

/// A kind kernel, and a client that sends piece by piece.
fn in_pieces() -> Vec<u8> {
    [vec![0; CHOICES_BEFORE_STEPS], vec![IN_PIECES; 120]].concat()
}

/// Programs without raw bytes, then raw bytes behind each temper.
fn engine(corpus: &[Case]) -> Vec<Seed> {
    let programs = (0u8..16).map(|number| {
        let program: Vec<u8> = (0u8..60).map(|at| at.wrapping_mul(2 * number + 1) ^ number).collect();
        [&[program.len() as u8], &program[..]].concat()
    });
    let short = shortest_of_each(corpus.iter().map(|case| (kind(case), case.input.clone()))).into_iter();
    let short = short.map(|(_, input)| input).filter(|input| input.len() <= SEED_BYTES_MAX / 2).step_by(3);
    let said = SAID.iter().map(|text| text.as_bytes().to_vec());
    let tempers: Vec<Vec<u8>> = TEMPERS.iter().map(|temper| temper.to_vec()).chain([in_pieces()]).collect();
    let raw = said.flat_map(|text| vec![text; TEMPERS.len() + 1]).chain(short);
    let raw = raw.enumerate().map(|(number, input)| {
        let program = &tempers[number % tempers.len()];
        [&[program.len() as u8], &program[..], &input[..]].concat()
    });
    numbered(programs.chain(raw))
}
