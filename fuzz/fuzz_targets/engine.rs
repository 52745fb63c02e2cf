//! The fuzzer for the target `engine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::engine::run(input));
