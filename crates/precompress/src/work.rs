//! A run: the files of a folder over some threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::format::Format;
use crate::limits::JOBS_MAX;
use crate::packed::is_packed;
use crate::sibling::{self, Made};
use crate::summary::Summary;
use crate::walk;

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The formats, each with its level; higher levels than [`Format::level_max`] are lowered to it.
    pub formats: Vec<(Format, u32)>,
    /// Smaller files are left out.
    pub min_bytes: u64,
    /// Threads, 1 to [`JOBS_MAX`]; 0: one per core.
    pub jobs: usize,
    /// Nothing is made: it is only told what would be.
    pub dry_run: bool,
    /// Siblings that are there are made anew.
    pub force: bool,
}

impl Default for Options {
    /// All formats at their highest levels, for files from 1 KiB on.
    fn default() -> Self {
        let formats = Format::ALL.map(|format| (format, format.level_max())).to_vec();
        Self { formats, min_bytes: 1024, jobs: 0, dry_run: false, force: false }
    }
}

/// Makes the siblings of the files of a folder. `progress` is called after each file, on the thread that has done it, with what the run has
/// come to so far, and the file.
///
/// # Errors
/// Where the folder can't be read. What fails with a single file stands in the summary, and the others go on.
pub fn precompress(
    folder: &Path,
    options: &Options,
    progress: &(dyn Fn(&Summary, &Path) + Sync),
) -> io::Result<Summary> {
    let mut summary = Summary::of(options.formats.iter().map(|&(format, _)| format));
    let files = walk::files(folder, !options.dry_run, &mut summary)?;
    summary.files = files.len() as u64;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = if options.jobs == 0 { cores } else { options.jobs };
    let run =
        Run { options, files: &files, next: AtomicUsize::new(0), summary: Mutex::new(summary), progress };
    thread::scope(|scope| {
        for job in 1..jobs.min(JOBS_MAX).min(files.len()) {
            let run = &run;
            scope.spawn(move || run.work(job));
        }
        run.work(0);
    });
    Ok(run.summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What the threads of a run share.
struct Run<'a> {
    options: &'a Options,
    files: &'a [PathBuf],
    next: AtomicUsize,
    summary: Mutex<Summary>,
    progress: &'a (dyn Fn(&Summary, &Path) + Sync),
}

impl Run<'_> {
    /// Takes files until there are none left.
    fn work(&self, job: usize) {
        while let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.file(file, job);
            let mut summary = self.lock();
            summary.files_done += 1;
            (self.progress)(&summary, file);
        }
    }

    fn file(&self, file: &Path, job: usize) {
        if file.file_name().is_some_and(|name| is_packed(name.as_encoded_bytes())) {
            self.lock().packed += 1;
            return;
        }
        let meta = match fs::metadata(file) {
            Ok(meta) => meta,
            Err(error) => return self.lock().failed(file, &error),
        };
        if meta.len() < self.options.min_bytes {
            self.lock().too_small += 1;
            return;
        }
        for (index, &(format, level)) in self.options.formats.iter().enumerate() {
            if !self.options.force && sibling::is_up_to_date(&meta, &sibling::path(file, format)) {
                self.lock().formats[index].up_to_date += 1;
            } else if self.options.dry_run {
                self.lock().formats[index].made += 1;
            } else {
                let made = sibling::make(file, format, level.min(format.level_max()), job);
                self.note(index, file, meta.len(), made);
            }
        }
    }

    fn note(&self, index: usize, file: &Path, len: u64, made: io::Result<Made>) {
        let mut summary = self.lock();
        match made {
            Ok(Made::Bytes(bytes)) => {
                let format = &mut summary.formats[index];
                format.made += 1;
                format.bytes_before += len;
                format.bytes_after += bytes;
            }
            Ok(Made::NotSmaller) => summary.formats[index].not_smaller += 1,
            Err(error) => {
                let sibling = sibling::path(file, self.options.formats[index].0);
                summary.failed(&sibling, &error);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
