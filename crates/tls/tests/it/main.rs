//! Tests of the public interface, against rustls's client in memory and openssl where the machine has it.

mod acme;
mod authority;
mod certificates;
mod client_certificates;
#[cfg(feature = "aws-lc-rs")]
mod forged;
mod hostile;
mod link;
mod programs;
mod sessions;
mod tickets;
