//! The lab's own tests: figures from known data, and every kind of invalid block planted.

mod alone;
mod bar;
mod client;
mod counts;
mod judging;
mod pairing;
mod peers;
mod statistics;
mod tables;
