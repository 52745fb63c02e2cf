//! A worker's disk: what is in the kernel's caches, and work on other threads for the rest.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_io::fs::Root;

use crate::disk::Disk;
use crate::disk::work::{DiskWork, Job, WaitingRequest, WorkFolder};
use crate::limits::DISK_WAIT_S_MAX;
use crate::listing::names::FolderNames;
use crate::now::Now;

/// A folder's disk for one worker.
pub(crate) struct WorkerDisk {
    /// Its root is the present one.
    pub(crate) folder: WorkFolder,
    /// Work that is not finished, as far as known.
    jobs: Vec<(DiskWork, Rc<Job>)>,
    /// The present request waits here for the disk: its response can't be deferred.
    pub(crate) waits: bool,
    /// Time at which the work of a request has failed last.
    failed_ms: Option<u64>,
    /// False once the file system was found unable to read without waiting.
    reads_cached: Cell<bool>,
}

/// Disk work that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFailure {
    /// The queue is full, no thread can be started, or the folder is replaced all the time.
    Busy,
    /// The disk hasn't responded in time.
    Late,
    /// The work has panicked.
    Panicked,
}

impl WorkerDisk {
    pub(crate) fn new(folder: WorkFolder) -> Self {
        let reads_cached = Cell::new(true);
        Self { folder, jobs: Vec::new(), waits: false, failed_ms: None, reads_cached }
    }

    /// Returns the disk for the present request.
    pub(crate) fn access(&self) -> Disk<'_> {
        match self.waits {
            true => Disk::waiting(self.root()),
            false => Disk::in_memory(self.root(), self.folder.threads.hook.is_some(), &self.reads_cached),
        }
    }

    pub(crate) fn root(&self) -> &Root {
        &self.folder.root
    }

    /// Notes that the work of a request has failed.
    pub(crate) fn failed(&mut self, now: Now) {
        self.failed_ms = Some(now.ms);
    }

    /// Returns whether work has failed within the time that a request waits.
    pub(crate) fn has_failed_lately(&self, now: Now) -> bool {
        self.failed_ms.is_some_and(|failed_ms| now.ms < failed_ms + DISK_WAIT_S_MAX * 1000)
    }

    /// Has a request wait for this work: in progress for another one, or begun now.
    pub(crate) fn wait_for(
        &mut self,
        work: DiskWork,
        names: Option<Arc<FolderNames>>,
        now: Now,
    ) -> WaitingRequest {
        self.jobs.retain(|(_, job)| !job.is_finished());
        if let Some((_, job)) = self.jobs.iter().find(|(known, _)| *known == work) {
            return job.join();
        }
        let waiting = Job::start(self.folder.clone(), work.clone(), names, now);
        self.jobs.push((work, Rc::clone(waiting.job())));
        waiting
    }
}
