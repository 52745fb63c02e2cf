//! The crate's behaviour, seen from outside: conversations by bytes, and with the client of the crate `h2`.

mod budgets;
mod client;
mod echo;
mod oracle;
mod splits;
mod states;
mod testkit_client;
mod windows;
