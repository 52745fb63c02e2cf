//! The fuzzer for the target `parser`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::parser::run(input));
