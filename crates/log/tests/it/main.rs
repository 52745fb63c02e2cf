//! The crate's tests: lines of any entry, and destinations that fail, are slow or are replaced.

mod destinations;
mod lines;
mod slow;
mod support;
