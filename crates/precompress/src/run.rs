//! A run: distributes the files of a folder over threads, and counts what it did.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use shearwater_compress::{Coding, level_max};
use shearwater_io::fs::Meta;

use crate::folder;
use crate::limits::{FAILURES_MAX, JOBS_MAX};
use crate::sample::{self, is_packed};
use crate::sibling::{self, SiblingState};

/// Options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Formats with their levels. Levels above [`level_max`] are lowered to it, Brotli's 0 and 1 raised to 2.
    pub formats: Vec<(Coding, u32)>,
    /// Minimum size of a file in bytes.
    pub min_bytes: u64,
    /// Threads, 1 to [`JOBS_MAX`]; 0: one per core.
    pub jobs: usize,
    /// Makes nothing, and counts what it would make.
    pub dry_run: bool,
    /// Makes existing siblings anew.
    pub force: bool,
}

impl Default for Options {
    /// All formats at their highest levels, for files of at least 1 KiB.
    fn default() -> Self {
        let formats = Coding::ALL.map(|format| (format, level_max(format))).to_vec();
        Self { formats, min_bytes: 1024, jobs: 0, dry_run: false, force: false }
    }
}

/// Makes the siblings of the files of a folder. `progress` is called after each file, on the thread that processed it, with the counts so
/// far and the file.
///
/// # Errors
/// The folder can't be read, or is in use by another run ([`io::ErrorKind::ResourceBusy`]), except for dry runs. Errors with single files
/// are in the summary.
pub fn precompress(
    folder: &Path,
    options: &Options,
    progress: &(dyn Fn(&RunSummary, &Path) + Sync),
) -> io::Result<RunSummary> {
    let _lock = if options.dry_run { None } else { lock(folder)? };
    let mut summary = RunSummary::of(options.formats.iter().map(|&(format, _)| format));
    let files = folder::files(folder, !options.dry_run, &mut |path, error| summary.failed(path, error))?;
    summary.files = files.len() as u64;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = if options.jobs == 0 { cores } else { options.jobs };
    let run = CompressionRun {
        options,
        files: &files,
        next: AtomicUsize::new(0),
        summary: Mutex::new(summary),
        progress,
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(JOBS_MAX).min(files.len()) {
            scope.spawn(|| run.work());
        }
        run.work();
    });
    Ok(run.summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Locks a folder until the returned file is dropped. Returns `None` on a file system without locks, where two runs at once only waste
/// work.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let folder = File::open(folder)?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(Errno::WOULDBLOCK) => {
            let why = "another `shearwater precompress` is running in it";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
        }
        Err(_) => Ok(None),
    }
}

/// Counts of a run, final or so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Files found.
    pub files: u64,
    /// Files processed.
    pub files_done: u64,
    /// Files below the minimum size.
    pub too_small: u64,
    /// Files in compressed formats.
    pub packed: u64,
    /// Counts by format, in the order of the options.
    pub formats: Vec<PerFormat>,
    /// Failures, at most [`FAILURES_MAX`].
    pub failures: Vec<FailedFile>,
    /// Failures beyond that.
    pub failures_left_out: u64,
}

/// Counts of siblings in one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerFormat {
    /// The format.
    pub format: Coding,
    /// Siblings made; in a dry run, siblings to make.
    pub made: u64,
    /// Siblings that are current and have the content of their files.
    pub up_to_date: u64,
    /// Unused siblings with the content of their files, whose times were set; in a dry run, to set.
    pub refreshed: u64,
    /// Unused siblings with other content that are not replaced, because a new one would save too little.
    pub stale: u64,
    /// Siblings not made because they would save too little.
    pub not_smaller: u64,
    /// Bytes of the files whose siblings were made.
    pub bytes_before: u64,
    /// Bytes of their siblings.
    pub bytes_after: u64,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedFile {
    /// The file or folder.
    pub path: PathBuf,
    /// The error.
    pub why: String,
}

impl RunSummary {
    pub(crate) fn of(formats: impl Iterator<Item = Coding>) -> Self {
        let none = |format| PerFormat {
            format,
            made: 0,
            up_to_date: 0,
            refreshed: 0,
            stale: 0,
            not_smaller: 0,
            bytes_before: 0,
            bytes_after: 0,
        };
        Self { formats: formats.map(none).collect(), ..Self::default() }
    }

    pub(crate) fn failed(&mut self, path: &Path, error: &io::Error) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(FailedFile { path: path.to_owned(), why: error.to_string() });
        } else {
            self.failures_left_out += 1;
        }
    }

    /// Returns the number of all failures.
    #[must_use]
    pub fn failures_count(&self) -> u64 {
        self.failures.len() as u64 + self.failures_left_out
    }
}

/// Outcome for one sibling.
#[derive(Debug, Clone, Copy)]
enum SiblingOutcome {
    /// Skipped: the file is too small or compressed, and has no sibling.
    Skipped,
    UpToDate,
    Refreshed,
    Stale,
    NotSmaller,
    WouldBeMade,
    /// Made, with this many bytes.
    Made(u64),
}

/// A file to compress.
struct SourceFile<'a> {
    path: &'a Path,
    meta: Meta,
    /// Its format or size excludes siblings.
    is_skipped: bool,
    /// Result of the sample, once needed.
    compresses: Option<bool>,
}

/// State shared by the threads of a run.
struct CompressionRun<'a> {
    options: &'a Options,
    files: &'a [PathBuf],
    next: AtomicUsize,
    summary: Mutex<RunSummary>,
    progress: &'a (dyn Fn(&RunSummary, &Path) + Sync),
}

impl CompressionRun<'_> {
    /// Processes files until none are left.
    fn work(&self) {
        while let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.file(file);
            let mut summary = self.lock();
            summary.files_done += 1;
            (self.progress)(&summary, file);
        }
    }

    fn file(&self, path: &Path) {
        let meta = match fs::metadata(path) {
            Ok(meta) => Meta::from(&meta),
            Err(error) => return self.lock().failed(path, &error),
        };
        let is_skipped = self.skip(path, &meta);
        let mut source = SourceFile { path, meta, is_skipped, compresses: None };
        for (index, &(format, level)) in self.options.formats.iter().enumerate() {
            match self.settle(&mut source, format, level.min(level_max(format))) {
                Ok(outcome) => self.note(index, source.meta.len, outcome),
                Err(error) => self.lock().failed(&sibling::path(path, format), &error),
            }
        }
    }

    /// Returns `true`, and counts the file, if its format or size excludes siblings.
    fn skip(&self, file: &Path, meta: &Meta) -> bool {
        let is_packed = file.file_name().is_some_and(|name| is_packed(name.as_encoded_bytes()));
        let is_too_small = !is_packed && meta.len < self.options.min_bytes;
        let mut summary = self.lock();
        summary.packed += u64::from(is_packed);
        summary.too_small += u64::from(is_too_small);
        is_packed || is_too_small
    }

    /// Checks, refreshes or makes one sibling.
    fn settle(&self, source: &mut SourceFile<'_>, format: Coding, level: u32) -> io::Result<SiblingOutcome> {
        let Options { dry_run, force, .. } = *self.options;
        let state = SiblingState::of(&sibling::path(source.path, format), format, &source.meta);
        let is_made_anew = force && !source.is_skipped;
        match state {
            // Times and length don't prove that it has this content.
            SiblingState::Current if !is_made_anew && sibling::is_of_file(source.path, format)? => {
                return Ok(SiblingOutcome::UpToDate);
            }
            SiblingState::Unused if !is_made_anew && sibling::refresh(source.path, format, dry_run)? => {
                return Ok(SiblingOutcome::Refreshed);
            }
            _ => {}
        }
        let compresses = match source.compresses {
            Some(known) => known,
            None if source.is_skipped => false,
            None => *source.compresses.insert(sample::compresses(source.path, source.meta.len)?),
        };
        let outcome = match (source.is_skipped, compresses) {
            (true, _) => SiblingOutcome::Skipped,
            (false, false) => SiblingOutcome::NotSmaller,
            (false, true) if dry_run => SiblingOutcome::WouldBeMade,
            (false, true) => sibling::make(source.path, format, level)?
                .map_or(SiblingOutcome::NotSmaller, SiblingOutcome::Made),
        };
        let is_left = matches!(outcome, SiblingOutcome::Skipped | SiblingOutcome::NotSmaller);
        match state {
            SiblingState::Unused | SiblingState::Damaged if is_left => Ok(SiblingOutcome::Stale),
            SiblingState::Current if is_left && !sibling::is_of_file(source.path, format)? => {
                if !dry_run {
                    sibling::retire(source.path, format)?;
                }
                Ok(SiblingOutcome::Stale)
            }
            _ => Ok(outcome),
        }
    }

    fn note(&self, index: usize, len: u64, outcome: SiblingOutcome) {
        let format = &mut self.lock().formats[index];
        match outcome {
            SiblingOutcome::Skipped => {}
            SiblingOutcome::UpToDate => format.up_to_date += 1,
            SiblingOutcome::Refreshed => format.refreshed += 1,
            SiblingOutcome::Stale => format.stale += 1,
            SiblingOutcome::NotSmaller => format.not_smaller += 1,
            SiblingOutcome::WouldBeMade => format.made += 1,
            SiblingOutcome::Made(bytes) => {
                format.made += 1;
                format.bytes_before += len;
                format.bytes_after += bytes;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RunSummary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
