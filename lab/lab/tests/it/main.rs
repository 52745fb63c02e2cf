//! The lab's own tests: figures from known data, and every kind of invalid block planted.

mod client;
mod counts;
mod judging;
mod pairing;
mod statistics;
mod tables;
