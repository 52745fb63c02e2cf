//! The fuzzer for the target `http2`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::http2::run(input));
