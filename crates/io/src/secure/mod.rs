//! TLS below the contract: a driver that opens and seals records over another driver.
//!
//! It knows records, buffers and budgets; the cryptography is a [`Provider`]'s.

mod session;

pub use session::{
    Failure, Opened, Provider, RECORD_BYTES_MAX, RECORD_WIRE_BYTES_MAX, Session, SessionFacts, Step, Version,
};
