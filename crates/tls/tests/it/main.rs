//! Tests of the public interface, against rustls's client in memory and openssl where the machine has it.

mod authority;
mod certificates;
