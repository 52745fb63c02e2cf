//! Tools shared by the crates' tests, `e2e` and the lab.
//!
//! - [`ResponseReader`] parses responses from bytes, without I/O.
//! - [`Client`] is a blocking HTTP/1.1 client on one connection; it sends any bytes and reads strictly.
//! - [`TestClient`] is the same for tests: it panics where an exchange fails.
//! - [`http2`] is a client of HTTP/2, and the switch by which suites run over it.
//! - [`tls`] has settings of clients by TLS, and the switch by which suites run over it.
//! - [`random`] makes seeded generators, so that a failing run can be repeated.
//! - [`CountingAllocator`] counts what a test binary allocates.
//! - [`TestFolder`] is a temporary folder with files of certain times.
//! - [`Program`] starts a built server, waits until it listens, and stops it by its process id.
//! - [`versions`] writes and reads files that change while they are served.
//! - [`hostile_targets`] tries to leave a served folder by every spelling of a path.
//! - [`check_messages`] compares messages with those of a document, or writes them.
//! - `opens` watches which files are opened (Linux).
//! - [`process`] reads a process's memory, CPU time and descriptors from `/proc`.

#![deny(unsafe_code)]
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "only tests and tools call it"
)]

mod allocator;
mod client;
mod coded;
mod error;
mod folder;
pub mod hostile_targets;
pub mod http2;
mod message_cases;
#[cfg(target_os = "linux")]
pub mod opens;
pub mod process;
mod program;
pub mod random;
mod response;
mod stream;
mod test_client;
pub mod tls;
pub mod versions;

pub use allocator::{Allocations, CountingAllocator};
pub use client::{Client, TIMEOUT, request};
pub use coded::coded;
pub use error::Error;
pub use folder::TestFolder;
pub use message_cases::check_messages;
pub use program::{Program, Signal, free_address};
pub use response::{Event, Framing, Head, Response, ResponseReader, Step};
pub use stream::Stream;
pub use test_client::{ClientResponse, TestClient, assert_reset, until_refused};
