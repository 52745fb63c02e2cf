//! The descriptor limit, raised before anything is opened.

use std::io;
use std::sync::OnceLock;

use shearwater_io::os::{self, DescriptorLimit};

/// Soft limit at the start of the process.
static FOUND: OnceLock<u64> = OnceLock::new();

/// Raises the process's soft descriptor limit to the hard one. [`Server::bind`](crate::Server::bind) does so
/// too; call it to open many files earlier. Returns the limit at the start of the process each time.
///
/// # Errors
/// If the system reports no limit. If it forbids raising it, the current limit is returned.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let limit = os::raise_descriptor_limit(u64::MAX).or_else(|_| os::raise_descriptor_limit(0))?;
    let soft_before = *FOUND.get_or_init(|| limit.soft_before);
    Ok(DescriptorLimit { soft_before, ..limit })
}
