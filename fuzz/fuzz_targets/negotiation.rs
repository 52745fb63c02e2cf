//! The fuzzer for the target `negotiation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::negotiation::run(input));
