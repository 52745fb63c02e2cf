//! Runs over folders: what is made, what is left alone, what fails.

mod runs;
mod unused;
