//! All of `it` once more, served by `shearwater_tower::bind`.

#[path = "it/main.rs"]
mod it;

use it::{client, folder, gate, serve};
