//! Runs all tests of `it` with `shearwater_tower::bind`.

#[path = "it/main.rs"]
mod it;

use it::{files, serve};
