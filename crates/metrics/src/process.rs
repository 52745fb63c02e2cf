//! Figures of the process, as the system reports them. What it doesn't report is absent.

use std::fs;

use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};
use shearwater::engine::descriptor_limits;

/// Figures of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ProcessFigures {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) cpu_seconds: f64,
    pub(crate) open_descriptors: Option<u64>,
    pub(crate) descriptors_max: Option<u64>,
}

impl ProcessFigures {
    /// Reads them.
    pub(crate) fn read() -> Self {
        let memory = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut pages =
            memory.split(' ').map(|pages| Some(pages.trim().parse::<u64>().ok()? * page_size() as u64));
        let (virtual_bytes, resident_bytes) = (pages.next().flatten(), pages.next().flatten());
        Self {
            resident_bytes,
            virtual_bytes,
            cpu_seconds: cpu_seconds(),
            open_descriptors: open_descriptors(fs::metadata("/proc/self/fd").map_or(0, |fd| fd.len())),
            descriptors_max: descriptor_limits().map(|(soft, _)| soft).filter(|soft| *soft < u64::MAX),
        }
    }
}

/// Returns the number of open descriptors: the size of their folder from Linux 6.2 on, where a list of a million entries
/// takes most of a second, and before that, when the size is 0, the number of its entries.
fn open_descriptors(size: u64) -> Option<u64> {
    // An entry for the read itself is among them.
    let listed = || Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1));
    if size > 0 { Some(size) } else { listed() }
}

/// Returns the CPU time of all threads.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::{ProcessFigures, open_descriptors};

    #[test]
    fn descriptors_are_listed_only_where_their_number_is_unknown() {
        assert_eq!(open_descriptors(1_000_000), Some(1_000_000));
        assert!(open_descriptors(0).is_none_or(|open| (3..100_000).contains(&open)));
    }

    #[test]
    fn figures_of_this_process_are_plausible() {
        let figures = ProcessFigures::read();
        if let (Some(resident), Some(all)) = (figures.resident_bytes, figures.virtual_bytes) {
            assert!(100_000 < resident && resident <= all);
        }
        assert!(figures.open_descriptors.is_none_or(|open| (3..100_000).contains(&open)));
        assert!(figures.cpu_seconds > 0.0);
        assert!(figures.descriptors_max.is_none_or(|max| max >= figures.open_descriptors.unwrap_or(0)));
    }
}
