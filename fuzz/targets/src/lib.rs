//! The fuzz targets as functions of bytes. `fuzz/fuzz_targets` passes them a fuzzer's inputs, the tests pass seeds and mutations.
//! A target that finds a fault panics.
//!
//! Parts of the tests of `engine` and `http1` are included by path: no other crate needs them.

#![forbid(unsafe_code)]
#![allow(clippy::missing_panics_doc, reason = "a panic is how a target reports a fault")]

pub mod chunked;
pub mod engine;
pub mod hpack;
pub mod http2;
mod input;
mod model;
pub mod negotiation;
pub mod parser;
pub mod proxy;
pub mod ranges;
pub mod target;
pub mod tls;

#[expect(dead_code, unused_imports, reason = "the engine's own tests use the rest")]
#[path = "../../../crates/engine/tests/it/harness/mod.rs"]
mod harness;
#[path = "../../../crates/engine/tests/it/seeds/random.rs"]
mod random;
#[expect(dead_code, reason = "http1's own tests use the rest")]
#[path = "../../../crates/http1/tests/it/session.rs"]
mod session;
