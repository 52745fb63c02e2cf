//! The crate's behaviour, seen from outside.

mod adopting;
mod corpus;
mod corpus_format;
mod differential;
mod encode;
mod limits;
mod oracle;
mod prng;
mod properties;
mod resume;
mod session;
mod sizes;
mod texts;
mod upgrades;
