//! The fuzzer for the target `ranges`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::ranges::run(input));
