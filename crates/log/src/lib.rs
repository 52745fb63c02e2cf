//! Access logs that never block the threads that write them.
//!
//! Each worker formats its lines into a buffer of its own ([`LineWriter`]). One thread takes all buffers every
//! [`LOG_INTERVAL`](limits::LOG_INTERVAL) or when one is filled well, and writes them to a file, a pipe or a syslog
//! daemon. A destination that is slow or fails costs lines, which are counted, but never delays a worker.
//!
//! An [`Entry`] is plain data, so this crate knows no server.
//!
//! ```
//! use shearwater_log::{Entry, Format};
//!
//! let format = Format::parse("$remote_addr \"$request\" $status")?;
//! let mut line = Vec::new();
//! let field = |_: &str| None;
//! let entry = Entry { method: b"GET", target: b"/a\nb", status: Some(200), ..Entry::new(&field) };
//! format.append(&mut line, &entry, &mut Default::default());
//! assert_eq!(line, b"- \"GET /a\\x0Ab\" 200\n");
//! # Ok::<(), shearwater_log::FormatError>(())
//! ```

#![forbid(unsafe_code)]

mod buffers;
mod destination;
mod entry;
mod escape;
mod filter;
mod format;
pub mod limits;
mod syslog;
mod time;
mod writer;

pub use buffers::LineWriter;
pub use destination::{Destination, OpenError};
pub use entry::Entry;
pub use filter::Filter;
pub use format::{Custom, Format, FormatError, variables};
pub use syslog::SyslogAddress;
pub use time::TimeCache;
pub use writer::{Counts, Log, LogEvent, LogNotice, Options};
