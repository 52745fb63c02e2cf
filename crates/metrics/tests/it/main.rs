//! The crate's tests: what moves each metric, both text formats, the document, and the admin listener itself.

mod admin;
mod documented;
mod exposition;
mod moves;
mod parser;
mod served;
