//! Group `files`: every byte of a served folder, and nothing outside of it.

mod large;
mod many;
mod traversal;

pub(crate) use large::large_file;
pub(crate) use many::many_files;
pub(crate) use traversal::{race, traversal};
