//! The fuzzer for the target `tls`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::tls::run(input));
