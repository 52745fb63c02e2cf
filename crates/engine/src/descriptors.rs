//! The limit of descriptors, raised before anything is opened.

use std::io;
use std::sync::OnceLock;

use shearwater_io::os::{self, DescriptorLimit};

/// The soft limit with which the process came.
static FOUND: OnceLock<u64> = OnceLock::new();

/// Raises the process's soft limit of descriptors to its hard one. [`Server::bind`](crate::Server::bind) does so too; who opens
/// many files before it asks first. Told each time: the limit with which the process came.
///
/// # Errors
/// Where the system tells no limit. Where it forbids raising it, the limit that was found will do.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let limit = os::raise_descriptor_limit(u64::MAX).or_else(|_| os::raise_descriptor_limit(0))?;
    let soft_before = *FOUND.get_or_init(|| limit.soft_before);
    Ok(DescriptorLimit { soft_before, ..limit })
}
