//! Latency of small requests beside large downloads: does a worker that waits for a disk delay its other connections?

use std::fs::{self, File};
use std::io::{self, Error, IoSliceMut, Write};
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::bench::{RoundFigures, ServerSetup};
use crate::client::{DOWNLOAD_BYTES_MAX, Load, LoadCounts, Pacing};
use crate::folder::RunFolder;
use crate::scenario::file_bytes;

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

/// Sends small requests while the files are downloaded.
pub(crate) fn run(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let server = setup.start()?;
    let targets: Vec<String> = (0..DOWNLOADS).map(|number| format!("/large/{number:02}.bin")).collect();
    for target in &targets {
        prepare(setup.bench.folder, target).map_err(|error| format!("{target}: {error}"))?;
    }
    let load = Load {
        connections: CONNECTIONS,
        pacing: Pacing::Rate(RATE),
        latencies: true,
        downloads: targets,
        ..setup.scenario.load(setup.address, &server.expected, MILLIS)
    };
    figures(&setup.run_load(&load)?)
}

/// Returns the figures of a round, or why it does not count.
fn figures(counts: &LoadCounts) -> Result<RoundFigures, String> {
    // A response that is late shows in the latency.
    let errors = LoadCounts { timeouts: 0, ..*counts }
        .errors(None)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>();
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let longest_turn_ms = counts.client_longest_turn_us as f64 / 1e3;
    match counts.latency {
        _ if !errors.is_empty() => Err(errors.join(", ")),
        _ if counts.client_longest_turn_us > CLIENT_TURN_US_MAX => {
            Err(format!("the client itself was held up for {longest_turn_ms} ms"))
        }
        Some(latency) if counts.responses > 0 && counts.least_downloaded_bytes > 0 => Ok([
            ("client_longest_turn_ms", longest_turn_ms),
            ("responses", counts.responses as f64),
            ("downloaded_mib", mib(counts.downloaded_bytes)),
            ("least_downloaded_mib", mib(counts.least_downloaded_bytes)),
        ]
        .into_iter()
        .chain(latency.figures())
        .collect()),
        _ => Err("no response, or a download that got nothing".to_owned()),
    }
}

/// Writes a file where it is missing, and evicts it from the page cache.
fn prepare(folder: &RunFolder, target: &str) -> io::Result<()> {
    let path = folder.served(target);
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
fn is_evicted(file: &File) -> io::Result<bool> {
    match preadv2(file, &mut [IoSliceMut::new(&mut [0; 1])], 0, ReadWriteFlags::NOWAIT) {
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
        let latency = Some(Latency { p99_ns: 1_500_000, ..Latency::default() });
        let least_downloaded_bytes = 1 << 20;
        let sound = LoadCounts { responses: 500, latency, least_downloaded_bytes, ..LoadCounts::default() };
        assert!(figures(&sound).is_ok_and(|figures| figures["p99_ms"] == 1.5));
        let held_up = |client_longest_turn_us| figures(&LoadCounts { client_longest_turn_us, ..sound });
        assert!(held_up(CLIENT_TURN_US_MAX).is_ok() && held_up(CLIENT_TURN_US_MAX + 1).is_err());
        let closed = figures(&LoadCounts { read_errors: 1, timeouts: 1, ..sound });
        assert_eq!(closed, Err("1 connections closed or reset too early".to_owned()));
        assert!(figures(&LoadCounts { responses: 0, ..sound }).is_err());
        assert!(figures(&LoadCounts { least_downloaded_bytes: 0, ..sound }).is_err());
    }
}
