//! Bounds of reading a configuration, each with a line in `docs/limits.md`.

/// Maximum size of a configuration file in bytes.
pub const CONFIG_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum size in bytes of a file that isn't valid TOML for reporting all syntax errors; of a larger one, the first is reported.
pub const RECOVERED_BYTES_MAX: usize = 256 * 1024;

/// Maximum length of a string in bytes, with variables substituted.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of problems reported for one file; further ones are counted.
pub const PROBLEMS_MAX: usize = 50;

/// Maximum number of characters of a quoted line.
pub const QUOTED_CHARS_MAX: usize = 160;

/// Maximum number of characters of a name repeated in a message.
pub const SHOWN_CHARS_MAX: usize = 60;

/// Maximum number of characters of a full key, such as `site[0].headers.set.X-Frame-Options`, in a message.
pub const KEY_CHARS_MAX: usize = 200;

/// Maximum number of characters of an unknown name for suggesting similar ones.
pub const NAME_CHARS_MAX: usize = 40;
