//! The fuzzer for the target `chunked`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::chunked::run(input));
