//! Bounds of resolving a path.

/// Longest path in bytes, as the kernel's `PATH_MAX` without its NUL.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// Symbolic links followed for one path, as the kernel does.
pub(super) const LINKS_MAX: usize = 40;

/// Directories that one walk may hold open: the depth of the tree that it can reach.
pub(super) const DEPTH_MAX: usize = 256;

/// Attempts to open during concurrent renames.
pub(super) const TRIES_MAX: usize = 8;
