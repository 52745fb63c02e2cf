//! Limits of a run, each with a line in `docs/limits.md`.

/// Maximum number of files of a run.
pub const FILES_MAX: usize = 4_000_000;

/// Maximum depth of folders.
pub const FOLDERS_DEEP_MAX: usize = 256;

/// Maximum number of threads of a run.
pub const JOBS_MAX: usize = 256;

/// Maximum number of reported failures of a run; further ones are counted.
pub const FAILURES_MAX: usize = 1000;

/// Minimum saving of a sibling in percent.
pub const SAVED_PERCENT_MIN: u64 = 5;

/// Number of parts of a sample.
pub const SAMPLE_PARTS: usize = 16;

/// Bytes of a part. Files up to this size aren't sampled.
pub const SAMPLE_PART_BYTES: usize = 16 * 1024;

/// Minimum saving of a sample in percent for compressing its file.
pub const SAMPLE_SAVED_PERCENT_MIN: usize = 1;

/// Maximum number of names of a folder that are searched for unused siblings.
pub const UNUSED_NAMES_MAX: usize = 100_000;
