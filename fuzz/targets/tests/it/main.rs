//! The fuzz targets without a fuzzer: all seeds, and mutations of them, the same in every run.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use fastrand::Rng;
use shearwater_fuzz_targets::{
    chunked, engine, hpack, http2, negotiation, parser, proxy, ranges, target, tls,
};

/// Lowest number of seeds of a target, so that a missing folder is noticed.
const SEEDS_MIN: usize = 10;
/// Mutations of each target's seeds.
const MUTATIONS: usize = 10_000;
/// Bound on the changes that make a mutation.
const CHANGES_MAX: usize = 6;
/// The seed of all mutations.
const SEED: u64 = 1;

/// Makes a test for each target: its name, and the length of input up to which there is something new to find, in bytes.
macro_rules! targets {
    ($($name:ident $bytes_max:literal),*) => {
        $(#[test] fn $name() { check_target(stringify!($name), $name::run, $bytes_max); })*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets!(chunked 512, engine 1024, hpack 512, http2 1024, negotiation 256, parser 1024, proxy 256, ranges 512, target 256, tls 1024);

fn folder(name: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn check_target(name: &str, run: fn(&[u8]), bytes_max: usize) {
    let seeds: Vec<Vec<u8>> =
        folder(&format!("seeds/{name}")).iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(seeds.len() >= SEEDS_MIN, "{} seeds", seeds.len());
    seeds.iter().for_each(|seed| check(run, seed));
    let (mut random, words) = (Rng::with_seed(SEED), dictionary());
    for _ in 0..MUTATIONS {
        check(run, &mutate(&mut random, &seeds, &words, bytes_max));
    }
}

/// Runs an input and prints it if it fails.
fn check(run: fn(&[u8]), input: &[u8]) {
    let passed = panic::catch_unwind(AssertUnwindSafe(|| run(input)));
    assert!(passed.is_ok(), "fails with \"{}\"", input.escape_ascii());
}

/// Reads the words of `http.dict`, which a fuzzer inserts too.
fn dictionary() -> Vec<Vec<u8>> {
    let lines = include_str!("../../../http.dict").lines();
    let words = lines.filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    let words = words.map(|word| {
        word.replace("\\x0d", "\r").replace("\\x0a", "\n").replace("\\x09", "\t").replace("\\\"", "\"")
    });
    words.map(String::into_bytes).collect()
}

fn mutate(random: &mut Rng, seeds: &[Vec<u8>], words: &[Vec<u8>], bytes_max: usize) -> Vec<u8> {
    let mut input = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..=random.usize(..CHANGES_MAX) {
        let at = random.usize(..=input.len());
        let until = random.usize(at..=input.len().min(at + 16));
        match random.u8(..6) {
            0 if at < input.len() => input[at] = random.u8(..),
            1 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            2 => drop(input.drain(at..until)),
            3 => drop(input.splice(at..until, words[random.usize(..words.len())].clone())),
            4 => drop(input.splice(at..at, input[at..until].to_vec())),
            _ => {
                let other = &seeds[random.usize(..seeds.len())];
                input.truncate(at);
                input.extend_from_slice(&other[random.usize(..=other.len())..]);
            }
        }
    }
    input.truncate(bytes_max);
    input
}

/// Mutations seldom reach deep into the grammar of chunk extensions.
#[test]
fn chunk_extensions() {
    const PIECES: [&[u8]; 16] = [
        b";", b";", b"=", b"=", b" ", b"\t", b"a", b"!z", b"\"", b"\"", b"\"b\"", b"\\", b"\xFF", b"\0",
        b"\r", b"\n",
    ];
    let mut random = Rng::with_seed(SEED);
    for number in 0..10 * MUTATIONS {
        let count = random.usize(..=10);
        let extensions: Vec<u8> =
            (0..count).flat_map(|_| PIECES[random.usize(..PIECES.len())]).copied().collect();
        let split = (number as u16).to_be_bytes();
        let body =
            [&b"------"[..], &split, b"-1", &extensions, b"\r\nx\r\n0", &extensions, b"\r\n\r\n"].concat();
        check(chunked::run, &body);
    }
}

#[test]
fn each_target_has_its_fuzzer() {
    let fuzzers = folder("fuzz_targets");
    let names: Vec<&str> = fuzzers.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for file in &fuzzers {
        let run = format!("shearwater_fuzz_targets::{}::run", file.file_stem().unwrap().display());
        assert!(fs::read_to_string(file).unwrap().contains(&run), "{run}");
    }
}
