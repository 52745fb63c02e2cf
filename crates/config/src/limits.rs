//! Bounds of reading a configuration. Each has a line in `docs/limits.md`.

/// Bytes of a configuration file.
pub const CONFIG_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a file that is no TOML up to which all of its faults are looked for; of a larger one, the first is told.
pub const RECOVERED_BYTES_MAX: usize = 256 * 1024;

/// Bytes of one text, after the environment's variables have been put in.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// Problems of one file that are told; further ones are counted.
pub const PROBLEMS_MAX: usize = 50;

/// Characters of a line that are quoted with a problem in it.
pub const QUOTED_CHARS_MAX: usize = 160;

/// Characters of a value or key that are repeated in a sentence.
pub const SHOWN_CHARS_MAX: usize = 60;

/// Characters of a key's whole name, such as `site[0].headers.set.X-Frame-Options`, that are told with a problem of it.
pub const KEY_CHARS_MAX: usize = 200;

/// Characters up to which an unknown name is compared with the known ones.
pub const NAME_CHARS_MAX: usize = 40;
