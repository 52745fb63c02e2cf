//! Bounds of making siblings. Each has a line in `docs/limits.md`.

/// Files of one run.
pub const FILES_MAX: usize = 4_000_000;

/// Folders in folders that are gone into.
pub const FOLDERS_DEEP_MAX: usize = 256;

/// Threads of one run.
pub const JOBS_MAX: usize = 256;

/// Failures of one run that are told; further ones are counted.
pub const FAILURES_MAX: usize = 1000;

/// Parts of a hundred that a sibling has to be smaller by to be worth its place.
pub const SAVED_PERCENT_MIN: u64 = 5;

/// Parts of a file that its sample is made of.
pub const SAMPLE_PARTS: usize = 16;

/// Bytes of one of these parts. Files up to this size have no sample.
pub const SAMPLE_PART_BYTES: usize = 16 * 1024;

/// Parts of a hundred that a file's sample has to get smaller by, for the file to be compressed at all.
pub const SAMPLE_SAVED_PERCENT_MIN: usize = 1;

/// Names that are looked at in one folder to count its unused siblings.
pub const UNUSED_NAMES_MAX: usize = 100_000;
