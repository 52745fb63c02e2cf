//! The crate's tests: the contract on every driver, outputs, listeners.

mod contract;
mod fs;
mod listen;
mod os;
mod output;
mod poll;
mod sim;
