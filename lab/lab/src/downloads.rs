//! Small answers beside large downloads: does a worker that waits for a disk keep others waiting?

use std::fs::{self, File};
use std::io::{Error, IoSliceMut, Write};
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::alone::{Figures, Stage};
use crate::client::beside::Beside;
use crate::process::Launch;
use crate::scenario::file_bytes;

/// Clients that download, each its own file.
pub const CLIENTS: u32 = 20;
/// Length of a file.
const FILE_BYTES: u64 = 2 << 30;
/// So much at a file's beginning is on the disk, to be read from there; the rest is a hole, which the kernel fills with zeros instead
/// of reading it, at the worker's expense.
const WRITTEN_BYTES: u64 = 192 << 20;
/// A download that gets further comes near the hole, and its run is void: the kernel reads so much ahead at most.
pub const DOWNLOAD_BYTES_MAX: u64 = WRITTEN_BYTES - (16 << 20);
/// Length of one write.
const PIECE_BYTES: usize = 1 << 20;
/// Tries at evicting a file, and how long lies between them.
const EVICTIONS_MAX: u32 = 20;
const EVICT_AGAIN: Duration = Duration::from_millis(50);
/// How long small requests are sent in a round: before a virtual machine runs out of pages that its host has given it already.
const MILLIS: u64 = 1_000;
/// If the client itself was held up for longer, in microseconds, more than one request of a hundred was late because of it,
/// and its p99 is not the server's.
pub const CLIENT_TURN_US_MAX: u64 = 10_000;
/// Where the files lie, below what is served.
const FOLDER: &str = "large";

/// The target of one of the files.
pub fn target(number: u32) -> String {
    format!("/{FOLDER}/{number:02}.bin")
}

/// Sends small requests while the files are downloaded.
///
/// # Errors
/// The files cannot be made or evicted, the client failed, or a download got nothing.
pub fn beside(stage: &Stage<'_>) -> Result<Figures, String> {
    for number in 0..CLIENTS {
        prepare(stage, number).map_err(|error| format!("{}: {error}", target(number)))?;
    }
    let (address, bytes, small) = (stage.address, stage.answer_bytes, stage.scenario.target(0));
    let client = Launch::of_client(&format!(
        "beside --address {address} --target {small} --bytes {bytes} --millis {MILLIS}"
    ))?;
    let counts = client.counts(Beside::parse)?;
    figures(&counts)
}

/// What the client's counts come to.
///
/// # Errors
/// They are none to rely on.
pub fn figures(counts: &Beside) -> Result<Figures, String> {
    if counts.errors > 0 {
        return Err(format!("{} errors", counts.errors));
    }
    if counts.answers == 0 || counts.least_downloaded_bytes == 0 {
        return Err("no answer, or a download that got nothing".to_owned());
    }
    let ms = |us: u64| us as f64 / 1e3;
    if counts.longest_turn_us > CLIENT_TURN_US_MAX {
        return Err(format!("the client itself was held up for {} ms", ms(counts.longest_turn_us)));
    }
    Ok(vec![
        ("p99_ms", ms(counts.p99_us)),
        ("p50_ms", ms(counts.p50_us)),
        ("max_ms", ms(counts.max_us)),
        ("client_longest_turn_ms", ms(counts.longest_turn_us)),
        ("answers", counts.answers as f64),
        ("downloaded_mib", counts.downloaded_bytes as f64 / 1_048_576.0),
        ("least_downloaded_mib", counts.least_downloaded_bytes as f64 / 1_048_576.0),
    ])
}

/// A file of which nothing is in memory.
fn prepare(stage: &Stage<'_>, number: u32) -> std::io::Result<()> {
    let path = stage.site.public().join(target(number).trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
    if file.metadata()?.len() != FILE_BYTES {
        let piece = file_bytes(PIECE_BYTES);
        for _ in 0..WRITTEN_BYTES / PIECE_BYTES as u64 {
            file.write_all(&piece)?;
        }
        file.set_len(FILE_BYTES)?;
    }
    // What is not written yet cannot be evicted, and what is being read for a server that has just ended only later.
    file.sync_all()?;
    for _ in 0..EVICTIONS_MAX {
        fadvise(&file, 0, None, Advice::DontNeed)?;
        if is_evicted(&file)? {
            return Ok(());
        }
        thread::sleep(EVICT_AGAIN);
    }
    Err(Error::other("still in memory after it was to be evicted"))
}

/// Whether a read that may not wait finds nothing.
fn is_evicted(file: &File) -> std::io::Result<bool> {
    let mut first = [0; 1];
    let mut into = [IoSliceMut::new(&mut first)];
    match preadv2(file, &mut into, 0, ReadWriteFlags::NOWAIT) {
        Err(Errno::AGAIN) => Ok(true),
        Ok(_) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
