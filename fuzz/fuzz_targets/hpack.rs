//! The fuzzer for the target `hpack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::hpack::run(input));
