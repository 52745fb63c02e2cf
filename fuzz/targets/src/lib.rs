//! What the fuzz targets check, as plain functions of bytes. `fuzz/fuzz_targets` hands them what a fuzzer comes up with; this crate's
//! tests hand them the seeds and mutations of these, on any toolchain. A function that finds a fault panics.
//!
//! The harness of the engine's tests and the session of `http1`'s are taken in by their paths: they are private to those tests, and
//! a crate of their own would make a public interface of them for the sake of one more user.

#![forbid(unsafe_code)]

pub mod chunked;
pub mod engine;
pub mod input;
pub mod negotiation;
pub mod parser;
mod plain_chunks;
mod plain_head;
pub mod ranges;
pub mod seeds;
pub mod target;

#[expect(dead_code, reason = "http1's own tests use the rest")]
#[path = "../../../crates/http1/tests/it/corpus_format.rs"]
mod corpus_format;
#[expect(dead_code, unused_imports, reason = "the engine's own tests use the rest")]
#[path = "../../../crates/engine/tests/it/harness/mod.rs"]
mod harness;
#[expect(dead_code, reason = "http1's own tests use the rest")]
#[path = "../../../crates/http1/tests/it/session.rs"]
mod session;

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of the wrapper in `fuzz/fuzz_targets` and of the folder in `fuzz/seeds`.
    pub name: &'static str,
    /// Checks one input. Panics where something is wrong.
    pub run: fn(&[u8]),
    /// The length of input up to which there is something new to find, in bytes.
    pub input_bytes_max: usize,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "parser", run: parser::run, input_bytes_max: 1024 },
    Target { name: "chunked", run: chunked::run, input_bytes_max: 512 },
    Target { name: "target", run: target::run, input_bytes_max: 256 },
    Target { name: "ranges", run: ranges::run, input_bytes_max: 512 },
    Target { name: "negotiation", run: negotiation::run, input_bytes_max: 256 },
    Target { name: "engine", run: engine::run, input_bytes_max: 1024 },
];
