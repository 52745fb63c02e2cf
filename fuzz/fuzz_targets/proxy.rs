//! The fuzzer for the target `proxy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::proxy::run(input));
