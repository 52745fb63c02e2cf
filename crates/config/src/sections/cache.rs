//! `[cache]`: what each worker keeps of files in memory.

use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{Flag, Integer};

/// What each worker keeps of files in memory, for all sites together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Whether any bytes of files are kept.
    pub enabled: bool,
    /// Bytes of all files that are kept.
    pub bytes_max: u64,
    /// Number of files that are kept.
    pub entries_max: u32,
    /// Size of the largest file that is kept.
    pub file_bytes_max: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { enabled: true, bytes_max: 33_554_432, entries_max: 4096, file_bytes_max: 65_536 }
    }
}

impl Fields for Cache {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "enabled",
            "Whether any bytes of files are kept. Without, each turn opens and reads its files.",
            Flag,
            &mut self.enabled,
        );
        visit.field(
            "bytes_max",
            "Bytes of all files that a worker keeps; something that was not used lately makes room.",
            Integer(0..=1_099_511_627_776),
            &mut self.bytes_max,
        );
        visit.field(
            "entries_max",
            "Files that a worker keeps; something that was not used lately makes room.",
            Integer(1..=16_777_216),
            &mut self.entries_max,
        );
        visit.field(
            "file_bytes_max",
            "Size of the largest file that is kept; larger ones are sent from their file.",
            Integer(0..=1_073_741_824),
            &mut self.file_bytes_max,
        );
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        if self.file_bytes_max > self.bytes_max {
            let name = if table.has("file_bytes_max") { "file_bytes_max" } else { "bytes_max" };
            let what = format!(
                "one file may have {} bytes, but all together {}: raise bytes_max or lower file_bytes_max",
                self.file_bytes_max, self.bytes_max
            );
            reading.within(name, |reading| reading.problem(&table.span_of(name), what));
        }
    }
}
