//! Disk work on another thread, shared by the requests of a worker that need it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use shearwater::Offloaded;
use shearwater::engine::{KnownField, Request};
use shearwater::tasks::Sleep;
use shearwater_compress::negotiation::choose_coding;
use shearwater_io::fs::{Kind, OpenError, Opened, Root};

use crate::compressions::Compressions;
use crate::disk::records::{Recorder, Records};
use crate::disk::worker::DiskFailure;
use crate::disk::{Disk, DiskThreads, read_whole};
use crate::limits::{CacheLimits, SMALL_FILE_BYTES};
use crate::listing::names::{FolderNames, ListedFolder};
use crate::listing::rows::{self, ListOrder};
use crate::now::Now;
use crate::resolve::path::Shape;
use crate::resolve::search::{Search, SearchResult};
use crate::settings::FolderSettings;
use crate::siblings::Siblings;

/// A request's need of the disk; equal work is done once for several requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskWork {
    name: Vec<u8>,
    /// The shape of a path whose file is searched for; `None` for the file with this name.
    shape: Option<Shape>,
    /// The values of `Accept-Encoding`.
    accepted: Vec<Vec<u8>>,
    /// The query, which selects the page of a list.
    query: Option<String>,
    /// Repeats an open that a wait may mend. The first work doesn't: the worker may have the file in its cache.
    pub(crate) is_patient: bool,
}

impl DiskWork {
    /// Searches for the file of a path.
    pub(crate) fn search(name: &[u8], shape: Shape, is_listing: bool, request: &Request<'_>) -> Self {
        let query = request.query().filter(|_| is_listing).map(str::to_owned);
        Self { shape: Some(shape), query, ..Self::file(name, request) }
    }

    /// Opens the file of a name.
    pub(crate) fn file(name: &[u8], request: &Request<'_>) -> Self {
        let accepted = request.head().all(KnownField::AcceptEncoding).map(<[u8]>::to_vec).collect();
        Self { name: name.to_vec(), shape: None, accepted, query: None, is_patient: false }
    }
}

/// The folder that work is done in.
#[derive(Clone)]
pub(crate) struct WorkFolder {
    pub(crate) threads: DiskThreads,
    pub(crate) root: Root,
    pub(crate) settings: Arc<FolderSettings>,
    pub(crate) limits: CacheLimits,
    pub(crate) compressions: Compressions,
}

/// Results of work, and the time and root for which they are valid.
pub(crate) struct Found {
    pub(crate) root: Root,
    pub(crate) now: Now,
    pub(crate) records: Records,
    pub(crate) failure: Option<DiskFailure>,
    /// Opens were repeated.
    pub(crate) is_patient: bool,
}

/// Work of a worker's requests, until it is finished: a file that hangs occupies one thread, however many requests for it
/// come and go.
pub(crate) struct Job {
    /// `None` once it is finished.
    running: RefCell<Option<Running>>,
    /// The result, until all requests that wait for it have it.
    found: RefCell<Option<Rc<Found>>>,
    wakers: Arc<Wakers>,
    /// Number of requests that wait. Without one, the work isn't begun, and its result is dropped.
    waiting: Arc<AtomicUsize>,
    folder: WorkFolder,
    now: Now,
}

type Running = Pin<Box<dyn Future<Output = Result<Found, Offloaded>>>>;

/// The tasks that wait for a job.
#[derive(Default)]
struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    fn add(&self, waker: &Waker) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|known| known.will_wake(waker)) {
            all.push(waker.clone());
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(Waker::wake);
    }
}

impl Job {
    /// Queues work for a request. `names` are those of its folder, if they were read lately.
    pub(crate) fn start(
        folder: WorkFolder,
        work: DiskWork,
        names: Option<Arc<FolderNames>>,
        now: Now,
    ) -> WaitingRequest {
        let waiting = Arc::new(AtomicUsize::new(1));
        let (still_waiting, own) = (Arc::clone(&waiting), folder.clone());
        let running = folder.threads.pool.offload(move || run(own, &work, names, now, &still_waiting));
        let (running, found) = (RefCell::new(Some(Box::pin(running) as Running)), RefCell::default());
        let job = Self { running, found, wakers: Arc::default(), waiting, folder, now };
        WaitingRequest(Rc::new(job))
    }

    /// Adds a request that waits.
    pub(crate) fn join(self: &Rc<Self>) -> WaitingRequest {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingRequest(Rc::clone(self))
    }

    /// Returns whether it is finished.
    pub(crate) fn is_finished(&self) -> bool {
        let mut running = self.running.borrow_mut();
        let Some(future) = &mut *running else { return true };
        let waker = Waker::from(Arc::clone(&self.wakers));
        let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) else {
            return false;
        };
        *running = None;
        let found = result.unwrap_or_else(|failure| {
            self.failed(if failure == Offloaded::Full { DiskFailure::Busy } else { DiskFailure::Panicked })
        });
        *self.found.borrow_mut() = Some(Rc::new(found));
        true
    }

    fn failed(&self, failure: DiskFailure) -> Found {
        let (root, records) = (self.folder.root.clone(), Records::default());
        Found { root, now: self.now, records, failure: Some(failure), is_patient: false }
    }
}

/// A request that waits for a job. Dropped when it has the result, or its client has left.
pub(crate) struct WaitingRequest(Rc<Job>);

impl WaitingRequest {
    pub(crate) fn job(&self) -> &Rc<Job> {
        &self.0
    }

    /// Returns the result, or a failure if it isn't there when `sleep` ends.
    pub(crate) async fn found(self, sleep: Sleep) -> Rc<Found> {
        let mut sleep = pin!(sleep);
        poll_fn(|cx| match self.poll(cx) {
            Some(found) => Poll::Ready(found),
            None => sleep.as_mut().poll(cx).map(|()| Rc::new(self.0.failed(DiskFailure::Late))),
        })
        .await
    }

    fn poll(&self, cx: &Context<'_>) -> Option<Rc<Found>> {
        self.0.wakers.add(cx.waker());
        self.0.is_finished();
        self.0.found.borrow().clone()
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            // The result holds open files.
            self.0.is_finished();
            *self.0.found.borrow_mut() = None;
        }
    }
}

/// Does work on a thread of the pool.
fn run(
    folder: WorkFolder,
    work: &DiskWork,
    names: Option<Arc<FolderNames>>,
    now: Now,
    waiting: &AtomicUsize,
) -> Found {
    let WorkFolder { threads, mut root, settings, limits, .. } = folder;
    let is_wanted = || waiting.load(Ordering::Relaxed) > 0;
    let mut records = Records::default();
    if is_wanted() {
        if root.is_remote() {
            root.look_up();
        }
        let disk = Recorder::new(&root, threads.hook.clone(), names, &is_wanted, work.is_patient);
        Preparation { disk: &disk, settings: &settings, limits, work, now }.run();
        records = disk.into_records();
    }
    if !is_wanted() {
        records = Records::default();
    }
    Found { root, now, records, failure: None, is_patient: work.is_patient }
}

/// Opens and reads what the worker will probably need. If it needs something else, it asks again.
struct Preparation<'a> {
    disk: &'a Recorder<'a>,
    settings: &'a FolderSettings,
    limits: CacheLimits,
    work: &'a DiskWork,
    now: Now,
}

impl Preparation<'_> {
    fn run(&self) {
        let mut file = self.work.name.clone();
        // Errors are recorded, and reported by the worker.
        let _ = match self.work.shape {
            None => self.load(&mut file),
            Some(shape) => self.search(shape, &mut file),
        };
    }

    fn search(&self, shape: Shape, file: &mut Vec<u8>) -> Result<(), OpenError> {
        let name = &self.work.name[..];
        let search = Search { disk: self.disk, candidates: &self.settings.candidates };
        let mut other = Vec::new();
        match search.find(name, shape, file)? {
            SearchResult::File { opened, depends_on_path } => {
                if self.settings.candidates.clean_urls && depends_on_path {
                    search.canonical(name, file, &mut other)?;
                }
                self.load_opened(&opened, file)
            }
            SearchResult::Listing(opened) => self.list(&opened),
            SearchResult::Nothing => {
                search.page_without_slash(name, &mut other)?;
                match &self.settings.spa {
                    Some(spa) => self.load(&mut spa.clone()),
                    None => Ok(()),
                }
            }
            SearchResult::Folder | SearchResult::Status(_) => Ok(()),
        }
    }

    fn load(&self, name: &mut Vec<u8>) -> Result<(), OpenError> {
        let opened = self.disk.open(name)?;
        match opened.kind {
            Kind::File => self.load_opened(&opened, name),
            Kind::Directory => Ok(()),
        }
    }

    /// Reads a file and the sibling that the client prefers, if they are small.
    fn load_opened(&self, opened: &Opened, name: &mut Vec<u8>) -> Result<(), OpenError> {
        let siblings = Siblings::find(self.disk, self.settings, name, &opened.meta)?;
        self.read(opened);
        let accepted = self.work.accepted.iter().map(|value| &value[..]);
        if let Some(coding) = choose_coding(accepted, siblings.codings, &self.settings.codings) {
            name.extend_from_slice(coding.extension().as_bytes());
            self.read(&self.disk.open(name)?);
        }
        Ok(())
    }

    /// Reads a small file: into the records if it is to be cached, otherwise into the page cache.
    fn read(&self, opened: &Opened) {
        if self.limits.takes(opened.meta.len) {
            // The worker finds out what is wrong with it.
            let _ = read_whole(self.disk, opened).and_then(|_| self.disk.meta(opened));
        } else if opened.meta.len <= SMALL_FILE_BYTES {
            let _ = read_whole(self.disk.root(), opened);
        }
    }

    fn list(&self, opened: &Opened) -> Result<(), OpenError> {
        let folder = ListedFolder { opened, name: &self.work.name, hidden: self.settings.hidden };
        let query = self.work.query.as_deref();
        let order = ListOrder::of(query);
        let names = self.disk.names(&folder, order.pages_descend(), self.now)?;
        let start = rows::after(query).map_or(0, |after| names.start(&after));
        self.disk.rows(&folder, order, &names, start).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::{Arc, Barrier};
    use std::task::{Context, Waker};

    use shearwater_io::fs::Root;

    use super::{DiskWork, Found, Job, WaitingRequest, WorkFolder};
    use crate::compressions::Compressions;
    use crate::disk::DiskThreads;
    use crate::disk::worker::DiskFailure;
    use crate::limits::{CacheLimits, DISK_THREADS_MAX, DISK_WAITING_MAX, SMALL_FILE_BYTES};
    use crate::now::Now;
    use crate::resolve::path::Shape;
    use crate::settings::FolderSettings;

    fn folder(path: &Path, threads: DiskThreads) -> WorkFolder {
        let root = Root::open(path).expect("a folder");
        let settings = Arc::new(FolderSettings::default_for_test());
        let (limits, compressions) = (CacheLimits::default(), Compressions::of_process());
        WorkFolder { threads, root, settings, limits, compressions }
    }

    fn start(folder: &WorkFolder, name: &str) -> WaitingRequest {
        let shape = Some(Shape::File);
        let work =
            DiskWork { name: name.into(), shape, accepted: Vec::new(), query: None, is_patient: false };
        Job::start(folder.clone(), work, None, Now { ms: 1, unix_seconds: 1 })
    }

    fn poll(job: &WaitingRequest) -> Option<Rc<Found>> {
        job.poll(&Context::from_waker(Waker::noop()))
    }

    fn finish(job: &WaitingRequest) -> Rc<Found> {
        loop {
            match poll(job) {
                Some(found) => return found,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn bounds_the_work_that_waits_for_a_thread() {
        let temporary = tempfile::tempdir().expect("a folder");
        let gate = Arc::new(Barrier::new(DISK_THREADS_MAX + 1));
        let at_gate = Arc::clone(&gate);
        let hook = move |name: &[u8]| {
            if name == b"hang" {
                at_gate.wait();
                at_gate.wait();
            }
        };
        let threads = DiskThreads::with_hook(hook);
        let folder = folder(temporary.path(), threads);
        let hanging: Vec<_> = (0..DISK_THREADS_MAX).map(|_| start(&folder, "hang")).collect();
        gate.wait();
        let waiting: Vec<_> = (0..DISK_WAITING_MAX).map(|_| start(&folder, "none")).collect();
        let rejected = poll(&start(&folder, "none")).expect("it is rejected at once");
        assert_eq!(rejected.failure, Some(DiskFailure::Busy));
        assert!(waiting.iter().all(|job| poll(job).is_none()));
        gate.wait();
        assert!(hanging.iter().chain(&waiting).all(|job| finish(job).failure.is_none()));
    }

    #[test]
    fn work_that_nobody_waits_for_is_not_begun_and_results_are_dropped() {
        let temporary = tempfile::tempdir().expect("a folder");
        let gate = Arc::new(Barrier::new(DISK_THREADS_MAX + 1));
        let at_gate = Arc::clone(&gate);
        let hook = move |name: &[u8]| {
            assert_ne!(name, b"left");
            at_gate.wait();
            at_gate.wait();
        };
        let threads = DiskThreads::with_hook(hook);
        let folder = folder(temporary.path(), threads);
        let hanging: Vec<_> = (0..DISK_THREADS_MAX).map(|_| start(&folder, "hang")).collect();
        gate.wait();
        let left = start(&folder, "left");
        let (never_begun, begun) = (Rc::clone(left.job()), Rc::clone(hanging[0].job()));
        drop(left);
        let second = begun.join();
        drop(hanging);
        assert!(!begun.is_finished() && !never_begun.is_finished());
        gate.wait();
        assert!(finish(&second).records.opened(b"hang").is_some());
        drop(second);
        assert!(begun.found.borrow().is_none(), "the last request has taken it");
        while !never_begun.is_finished() {
            std::thread::yield_now();
        }
        let found = never_begun.found.borrow().clone().expect("a result");
        assert!(found.failure.is_none() && found.records.opened(b"left").is_none());
    }

    #[test]
    fn a_panic_is_a_failure() {
        let temporary = tempfile::tempdir().expect("a folder");
        let hook = |_: &[u8]| std::panic::resume_unwind(Box::new("on purpose"));
        let folder = folder(temporary.path(), DiskThreads::with_hook(hook));
        assert_eq!(finish(&start(&folder, "f")).failure, Some(DiskFailure::Panicked));
    }

    #[test]
    fn reads_small_files_only() {
        let temporary = tempfile::tempdir().expect("a folder");
        let cached_max = CacheLimits::default().cached_file_bytes_max;
        for (len, is_recorded) in [(cached_max, true), (cached_max + 1, false), (SMALL_FILE_BYTES + 1, false)]
        {
            std::fs::write(temporary.path().join("f"), vec![1; len as usize]).expect("written");
            let found = finish(&start(&folder(temporary.path(), DiskThreads::new()), "f"));
            let opened = found.records.opened(b"f").expect("it was opened").expect("it is there");
            let mut byte = [0];
            let read = found.records.read_at(&opened.meta, &mut byte, len - 1);
            assert_eq!((read, byte[0] == 1), (is_recorded.then_some(1), is_recorded), "{len}");
        }
    }
}
