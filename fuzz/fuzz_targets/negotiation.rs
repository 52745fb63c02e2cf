//! `Accept-Encoding` values and lists of entity tags, against a plain reading.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| shearwater_fuzz_targets::negotiation::run(input));
