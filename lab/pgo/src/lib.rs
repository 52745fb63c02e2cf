//! Profile-guided builds: where a profile lies, what it was made of, and how cargo is told to use it.
//!
//! `cargo xtask pgo` makes the profile; that command and `cargo lab` build with it. Both ask here, so that neither uses one that was
//! made of other sources or by another compiler.

#![forbid(unsafe_code)]

pub mod build;
mod digest;
pub mod place;
pub mod profile;
mod sources;
pub mod stamp;
pub mod toolchain;
