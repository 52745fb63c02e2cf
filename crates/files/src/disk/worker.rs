//! A worker's disk: what is in the kernel's caches, what another thread has found for a request, and nothing that waits.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use shearwater::Response;
use shearwater_io::fs::{Meta, OpenError, Opened, Root};

use crate::disk::work::{DiskWork, Found, Job, WaitingRequest, WorkFolder};
use crate::disk::{Disk, NamesResult};
use crate::limits::{DISK_JOBS_PER_REQUEST_MAX, DISK_WAIT_S_MAX};
use crate::listing::names::{FolderNames, ListedFolder};
use crate::listing::rows::{ListOrder, ListPage};
use crate::now::Now;

/// A folder's disk for one worker.
pub(crate) struct WorkerDisk {
    /// Its root is the present one.
    pub(crate) folder: WorkFolder,
    /// Work that is not finished, as far as known.
    jobs: Vec<(DiskWork, Rc<Job>)>,
    /// Results for the present request, only while it is handled.
    found: Vec<Rc<Found>>,
    /// The present request waits here for the disk: its response can't be deferred.
    waits: bool,
    /// Time at which the work of a request has failed last.
    failed_ms: Option<u64>,
    /// The next work for the present request repeats its opens.
    is_patient: Cell<bool>,
    /// False once the file system was found unable to read without waiting.
    reads_cached: Cell<bool>,
}

/// Disk work that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFailure {
    /// The queue is full, or no thread can be started.
    Busy,
    /// The disk hasn't responded in time.
    Late,
    /// The work has panicked.
    Panicked,
    /// Each read has failed, the last with this code of the system.
    Unreadable(i32),
}

impl WorkerDisk {
    pub(crate) fn new(folder: WorkFolder) -> Self {
        let (jobs, found, reads_cached) = (Vec::new(), Vec::new(), Cell::new(true));
        Self {
            folder,
            jobs,
            found,
            waits: false,
            failed_ms: None,
            is_patient: Cell::new(false),
            reads_cached,
        }
    }

    /// Begins a request with what was found for it; `None` if its response isn't deferred yet.
    pub(crate) fn begin(&mut self, found: Option<&[Rc<Found>]>, response: &Response<'_>) {
        self.waits = found.is_none() && !response.can_be_deferred();
        self.is_patient = Cell::new(false);
        self.found = found.unwrap_or_default().to_vec();
    }

    /// Returns the time from which on the results for the present request are valid.
    pub(crate) fn valid_from(&self, now: Now) -> Now {
        self.found.first().map_or(now, |first| first.now)
    }

    /// Returns whether another thread has found something for the present request.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Ends a request.
    pub(crate) fn end(&mut self) {
        self.waits = false;
        if !self.found.is_empty() {
            self.found = Vec::new();
        }
        if !self.jobs.is_empty() {
            self.jobs.retain(|(_, job)| !job.is_finished());
        }
    }

    /// Takes over the root that was looked up for this request on another thread. Returns whether it is another
    /// directory; `None` if it wasn't looked up.
    pub(crate) fn take_root(&mut self) -> Option<bool> {
        let found = self.found.iter().rev().find(|found| found.failure.is_none())?;
        let is_another = !found.root.is_same(&self.folder.root);
        if is_another {
            self.folder.root = found.root.clone();
        }
        Some(is_another)
    }

    /// Has another thread do this work for the present request.
    ///
    /// # Errors
    /// If earlier work for this request has failed, or there was too much.
    pub(crate) fn wait_for(
        &mut self,
        mut work: DiskWork,
        names: Option<Arc<FolderNames>>,
        now: Now,
    ) -> Result<WaitingRequest, DiskFailure> {
        may_continue(&self.found).inspect_err(|_| self.failed_ms = Some(now.ms))?;
        work.is_patient = self.is_patient.get();
        Ok(self.job(work, names, now))
    }

    /// Returns whether work has failed within the time that a request waits.
    pub(crate) fn has_failed_lately(&self, now: Now) -> bool {
        self.failed_ms.is_some_and(|failed_ms| now.ms < failed_ms + DISK_WAIT_S_MAX * 1000)
    }

    /// Has a request wait for this work: in progress for another one, or begun now.
    fn job(&mut self, work: DiskWork, names: Option<Arc<FolderNames>>, now: Now) -> WaitingRequest {
        let is_same = |(known, job): &&(DiskWork, Rc<Job>)| *known == work && !job.is_finished();
        if let Some((_, job)) = self.jobs.iter().find(is_same) {
            return job.join();
        }
        let waiting = Job::start(self.folder.clone(), work.clone(), names, now);
        self.jobs.push((work, Rc::clone(waiting.job())));
        waiting
    }

    /// Returns whether the worker may call what might wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.waits || self.has_cached_meta() && !self.root().has_cached_opens()
    }

    /// Returns whether metadata of an opened file can be read here.
    pub(crate) fn has_cached_meta(&self) -> bool {
        self.waits || !self.root().is_remote() && !self.is_cold()
    }

    /// Returns whether another thread should repeat an open that has failed for the present request: once.
    pub(crate) fn may_mend(&self, error: &OpenError) -> bool {
        let has_waited = self.found.iter().any(|found| found.is_patient);
        let is_first = error.is_passing() && !self.waits && !has_waited;
        self.is_patient.set(self.is_patient.get() || is_first);
        is_first
    }

    pub(crate) fn root(&self) -> &Root {
        &self.folder.root
    }

    fn is_cold(&self) -> bool {
        self.folder.threads.hook.is_some()
    }

    fn found<T>(&self, mut look: impl FnMut(&Found) -> Option<T>) -> Option<T> {
        let of_root = self.found.iter().rev().filter(|found| found.root.is_same(self.root()));
        of_root.filter_map(|found| look(found)).next()
    }
}

/// Returns the reason not to begin further work for a request.
fn may_continue(found: &[Rc<Found>]) -> Result<(), DiskFailure> {
    match found.iter().find_map(|found| found.failure) {
        Some(failure) => Err(failure),
        None if found.len() >= DISK_JOBS_PER_REQUEST_MAX => {
            let error = found.iter().find_map(|found| found.records.read_error);
            Err(error.map_or(DiskFailure::Busy, DiskFailure::Unreadable))
        }
        None => Ok(()),
    }
}

impl Disk for WorkerDisk {
    fn open(&self, name: &[u8]) -> Result<Opened, OpenError> {
        if self.found.is_empty() && self.has_cached_meta() && !self.waits {
            return self.root().open_cached(name);
        }
        if let Some(result) = self.found(|found| found.records.opened(name)) {
            return result;
        }
        match self.waits {
            true => self.root().open_beneath(name),
            false if self.is_cold() => Err(OpenError::WouldBlock),
            false => self.root().open_cached(name),
        }
    }

    fn read_at(&self, opened: &Opened, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(read) = self.found(|found| found.records.read_at(&opened.meta, bytes, offset)) {
            return Ok(read);
        }
        if !self.has_cached_meta() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.may_wait() || !self.reads_cached.get() {
            return self.root().read_at(opened, bytes, offset);
        }
        match opened.read_cached_at(bytes, offset) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.reads_cached.set(false);
                self.root().read_at(opened, bytes, offset)
            }
            read => read,
        }
    }

    fn meta(&self, opened: &Opened) -> io::Result<Meta> {
        match self.found(|found| found.records.meta(&opened.meta)) {
            Some(meta) => Ok(meta),
            None if self.has_cached_meta() => self.root().meta(opened),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn names(&self, folder: &ListedFolder<'_>, is_descending: bool, now: Now) -> NamesResult {
        match self.found(|found| found.records.names(folder, is_descending)) {
            Some(names) => names,
            None if self.may_wait() => self.root().names(folder, is_descending, now),
            None => Err(OpenError::WouldBlock),
        }
    }

    fn rows(
        &self,
        folder: &ListedFolder<'_>,
        order: ListOrder,
        names: &FolderNames,
        start: usize,
    ) -> Result<Arc<ListPage>, OpenError> {
        match self.found(|found| found.records.rows(folder, order, start)) {
            Some(page) => Ok(page),
            None if self.may_wait() => self.root().rows(folder, order, names, start),
            None => Err(OpenError::WouldBlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use shearwater_io::fs::Root;

    use super::{DISK_JOBS_PER_REQUEST_MAX, DiskFailure, Found, may_continue};
    use crate::disk::records::Records;
    use crate::now::Now;

    fn found(failure: Option<DiskFailure>) -> Rc<Found> {
        let (root, now) = (Root::open("/".as_ref()).expect("it is there"), Now { ms: 1, unix_seconds: 1 });
        Rc::new(Found { root, now, records: Records::default(), failure, is_patient: false })
    }

    #[test]
    fn bounds_the_work_of_a_request() {
        let done = vec![found(None); DISK_JOBS_PER_REQUEST_MAX];
        assert_eq!(may_continue(&done[1..]), Ok(()));
        assert_eq!(may_continue(&done), Err(DiskFailure::Busy));
        let mut failed = found(None);
        Rc::get_mut(&mut failed).expect("the only one").records.read_error = Some(5);
        let failed = vec![failed; DISK_JOBS_PER_REQUEST_MAX];
        assert_eq!(may_continue(&failed[1..]), Ok(()), "the next read may succeed");
        assert_eq!(may_continue(&failed), Err(DiskFailure::Unreadable(5)));
        assert_eq!(may_continue(&[found(None), found(Some(DiskFailure::Late))]), Err(DiskFailure::Late));
    }
}
