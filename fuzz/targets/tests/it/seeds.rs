//! Every seed and every input that was ever found holds; and so do the mutations.

use std::fs;
use std::panic::{self, AssertUnwindSafe};

use shearwater_fuzz_targets::input::{STAGE, STAGE_BYTES};
use shearwater_fuzz_targets::{TARGETS, Target, seeds};

use crate::mutations::Mutator;

/// The least number of seeds of a target: a folder that is not found can't go unnoticed.
const SEEDS_MIN: usize = 10;
/// Mutations of each target's seeds.
const MUTATIONS: usize = 10_000;
/// What all mutations follow from.
const SEED: u64 = 1;

/// The committed seeds of a target, by name.
fn read(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = seeds::folder().join(target.name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= SEEDS_MIN, "{}: {} seeds", target.name, files.len());
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// Runs an input; where it panics, shows it.
fn check(target: &Target, what: &str, input: &[u8]) {
    let held = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    assert!(held.is_ok(), "{} fails with {what}: \"{}\"", target.name, input.escape_ascii());
}

fn check_target(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = read(target);
    for (name, input) in &seeds {
        check(target, name, input);
    }
    let inputs: Vec<&[u8]> = seeds.iter().map(|(_, input)| &input[..]).collect();
    let mut mutator = Mutator::new(SEED, target.input_bytes_max);
    for number in 0..MUTATIONS {
        check(target, &format!("mutation {number}"), &mutator.mutate(&inputs));
    }
}

#[test]
fn heads_in_any_splits() {
    check_target("parser");
}

#[test]
fn bodies_in_any_splits() {
    check_target("chunked");
}

/// Mutations seldom get deep into the grammar of extensions: here is little else.
#[test]
fn extensions_of_chunks_in_any_splits() {
    const PIECES: &[&[u8]] = &[
        b";", b";", b"=", b"=", b" ", b"\t", b"a", b"!z", b"\"", b"\"", b"\"b\"", b"\\", b"\xFF", b"\0",
        b"\r", b"\n",
    ];
    let target = TARGETS.iter().find(|target| target.name == "chunked").unwrap();
    let mut mutator = Mutator::new(SEED, target.input_bytes_max);
    for number in 0..10 * MUTATIONS {
        let extensions = mutator.compose(PIECES, 10);
        let body = [b"-1", &extensions[..], b"\r\nx\r\n0", &extensions[..], b"\r\n\r\n"].concat();
        let stage = [&STAGE[..STAGE_BYTES - 2], &(number as u16).to_be_bytes()].concat();
        check(target, &format!("extensions {number}"), &[stage, body].concat());
    }
}

#[test]
fn request_targets_and_names() {
    check_target("target");
}

#[test]
fn ranges_of_files() {
    check_target("ranges");
}

#[test]
fn codings_and_entity_tags() {
    check_target("negotiation");
}

#[test]
fn conversations_with_the_engine() {
    check_target("engine");
}

#[test]
fn every_target_has_its_wrapper_and_its_test() {
    let wrappers = seeds::folder().join("../fuzz_targets");
    let tests = include_str!("seeds.rs");
    for target in TARGETS {
        let wrapper = fs::read_to_string(wrappers.join(format!("{}.rs", target.name))).unwrap();
        assert!(wrapper.contains(&format!("shearwater_fuzz_targets::{}::run", target.name)), "{wrapper}");
        assert!(tests.contains(&format!("check_target(\"{}\")", target.name)), "{}", target.name);
    }
    assert_eq!(fs::read_dir(wrappers).unwrap().count(), TARGETS.len(), "a wrapper without a target");
}
