//! Latency of small requests beside large downloads: does a worker that waits for a disk delay its other connections?

use std::fs::{self, File};
use std::io::{Error, IoSliceMut, Write};
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::block::{own_client, run_client};
use crate::client::{DOWNLOAD_BYTES_MAX, Load, Pacing, Tally};
use crate::scenario::file_bytes;
use crate::trials::{Figures, Stage};

/// Downloads, each of its own file.
const DOWNLOADS: u32 = 20;
const FILE_BYTES: u64 = 2 << 30;
/// Bytes of a file on the disk. The rest is a hole, which the kernel fills with zeros at the worker's expense; it reads
/// at most 16 MiB ahead.
const WRITTEN_BYTES: u64 = DOWNLOAD_BYTES_MAX + (16 << 20);
const WRITE_BYTES: usize = 1 << 20;
/// Attempts to evict a file, and the time between them.
const EVICTIONS_MAX: u32 = 20;
const EVICTION_INTERVAL: Duration = Duration::from_millis(50);
/// Length of a round: before a virtual machine runs out of pages that its host has given it already.
const MILLIS: u64 = 1_000;
/// Small requests a second, and connections for them, so that one late response does not delay the next request.
const RATE: u32 = 500;
const CONNECTIONS: u32 = 64;
/// Longest own delay of the client: beyond, more than one request of a hundred was late because of it.
const CLIENT_TURN_US_MAX: u64 = 10_000;

fn target(number: u32) -> String {
    format!("/large/{number:02}.bin")
}

/// Sends small requests while the files are downloaded.
pub(crate) fn measure(stage: &Stage<'_>) -> Result<Figures, String> {
    for number in 0..DOWNLOADS {
        prepare(stage, number).map_err(|error| format!("{}: {error}", target(number)))?;
    }
    let load = stage.order.scenario.load(stage.order.place.address, stage.response_bytes, MILLIS);
    let load = Load {
        connections: CONNECTIONS,
        pacing: Pacing::Rate(RATE),
        latencies: true,
        downloads: (0..DOWNLOADS).map(target).collect(),
        ..load
    };
    figures(&run_client(&own_client(&load)?)?)
}

/// Returns the figures of a round, or why it does not count.
fn figures(tally: &Tally) -> Result<Figures, String> {
    let errors = tally.socket_errors() - tally.timeouts + tally.status_errors;
    let (ms, mib) = (|us: u64| us as f64 / 1e3, |bytes: u64| bytes as f64 / 1_048_576.0);
    match tally.latency {
        _ if errors > 0 => Err(format!("{errors} errors")),
        Some(latency) if tally.responses > 0 && tally.least_downloaded_bytes > 0 => {
            let longest_turn_ms = ms(tally.longest_turn_us);
            if tally.longest_turn_us > CLIENT_TURN_US_MAX {
                return Err(format!("the client itself was held up for {longest_turn_ms} ms"));
            }
            Ok(vec![
                ("p99_ms", ms(latency.p99_us)),
                ("p50_ms", ms(latency.p50_us)),
                ("max_ms", ms(latency.max_us)),
                ("client_longest_turn_ms", longest_turn_ms),
                ("answers", tally.responses as f64),
                ("downloaded_mib", mib(tally.downloaded_bytes)),
                ("least_downloaded_mib", mib(tally.least_downloaded_bytes)),
            ])
        }
        _ => Err("no response, or a download that got nothing".to_owned()),
    }
}

/// Writes a file where it is missing, and evicts it from the page cache.
fn prepare(stage: &Stage<'_>, number: u32) -> std::io::Result<()> {
    let path = stage.order.place.folder.public().join(target(number).trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
    if file.metadata()?.len() != FILE_BYTES {
        let piece = file_bytes(WRITE_BYTES);
        for _ in 0..WRITTEN_BYTES / WRITE_BYTES as u64 {
            file.write_all(&piece)?;
        }
        file.set_len(FILE_BYTES)?;
    }
    // Unwritten pages can't be evicted, and pages being read for a server that has just ended only later.
    file.sync_all()?;
    for _ in 0..EVICTIONS_MAX {
        fadvise(&file, 0, None, Advice::DontNeed)?;
        if is_evicted(&file)? {
            return Ok(());
        }
        thread::sleep(EVICTION_INTERVAL);
    }
    Err(Error::other("still in memory after it was evicted"))
}

/// Returns true if a read that must not wait finds nothing.
fn is_evicted(file: &File) -> std::io::Result<bool> {
    let mut first = [0; 1];
    match preadv2(file, &mut [IoSliceMut::new(&mut first)], 0, ReadWriteFlags::NOWAIT) {
        Err(Errno::AGAIN) => Ok(true),
        Ok(_) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Latency;

    #[test]
    fn a_round_counts_only_if_all_downloads_progressed_and_the_client_kept_up() {
        let latency = Some(Latency { p50_us: 400, p99_us: 1_500, p999_us: 8_000, max_us: 9_000 });
        let sound = Tally { responses: 500, latency, least_downloaded_bytes: 1 << 20, ..Tally::default() };
        assert!(figures(&sound).is_ok_and(|figures| figures.contains(&("p99_ms", 1.5))));
        let held_up = |longest_turn_us| figures(&Tally { longest_turn_us, ..sound });
        assert!(held_up(CLIENT_TURN_US_MAX).is_ok() && held_up(CLIENT_TURN_US_MAX + 1).is_err());
        assert!(figures(&Tally { read_errors: 1, ..sound }).is_err());
        assert!(figures(&Tally { responses: 0, ..sound }).is_err());
        assert!(figures(&Tally { least_downloaded_bytes: 0, ..sound }).is_err());
    }
}
