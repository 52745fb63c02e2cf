//! Loads on another thread, shared by the requests of a worker that need them.

use std::cell::{Cell, RefCell};
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
use shearwater_io::fs::{OpenError, Root};

use crate::compressions::Compressions;
use crate::disk::load::{Load, Loaded};
use crate::disk::worker::DiskFailure;
use crate::disk::{Disk, DiskThreads, Patience};
use crate::limits::{CacheLimits, OPEN_RETRY_MS, OPEN_WAIT_S_MAX};
use crate::listing::names::FolderNames;
use crate::now::Now;
use crate::resolve::path::Shape;
use crate::settings::FolderSettings;

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
    /// Repeats an open that a wait may fix. Otherwise the worker has the file in its cache.
    is_patient: bool,
}

impl DiskWork {
    /// Searches for the file of a path; without a `shape`, loads the file of this name.
    pub(crate) fn new(
        name: &[u8],
        shape: Option<Shape>,
        query: Option<&str>,
        request: &Request<'_>,
        is_patient: bool,
    ) -> Self {
        let accepted = request.head().all(KnownField::AcceptEncoding).map(<[u8]>::to_vec).collect();
        Self { name: name.to_vec(), shape, accepted, query: query.map(str::to_owned), is_patient }
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

/// The result of work, and the time and root for which it is valid.
pub(crate) struct Found {
    pub(crate) root: Root,
    pub(crate) now: Now,
    pub(crate) loaded: Result<Loaded, OpenError>,
    /// Name of the file that was loaded, or that the error is about.
    pub(crate) file: Vec<u8>,
    /// Opens were repeated.
    pub(crate) is_patient: bool,
}

pub(crate) type FoundResult = Result<Rc<Found>, DiskFailure>;

/// Work of a worker's requests, until it is finished: a file that hangs occupies one thread, however many requests for it
/// come and go.
pub(crate) struct Job {
    /// `None` once it is finished.
    running: RefCell<Option<Running>>,
    /// The result, until all requests that wait for it have it.
    found: RefCell<Option<FoundResult>>,
    wakers: Arc<Wakers>,
    /// Number of requests that wait. Without one, the work isn't begun, and its result is dropped.
    waiting: Arc<AtomicUsize>,
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
        let still_waiting = Arc::clone(&waiting);
        let pool = folder.threads.pool.clone();
        let running = pool.offload(move || run(folder, &work, names.as_ref(), now, &still_waiting));
        let (running, found) = (RefCell::new(Some(Box::pin(running) as Running)), RefCell::default());
        let job = Self { running, found, wakers: Arc::default(), waiting };
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
        *self.found.borrow_mut() = Some(match result {
            Ok(found) => Ok(Rc::new(found)),
            Err(Offloaded::Full) => Err(DiskFailure::Busy),
            Err(_) => Err(DiskFailure::Panicked),
        });
        true
    }
}

/// A request that waits for a job. Dropped when it has the result, or its client has left.
pub(crate) struct WaitingRequest(Rc<Job>);

impl WaitingRequest {
    pub(crate) fn job(&self) -> &Rc<Job> {
        &self.0
    }

    /// Returns the result, or a failure if it isn't there when `sleep` ends.
    pub(crate) async fn found(self, sleep: Sleep) -> FoundResult {
        let mut sleep = pin!(sleep);
        poll_fn(|cx| match self.poll(cx) {
            Some(found) => Poll::Ready(found),
            None => sleep.as_mut().poll(cx).map(|()| Err(DiskFailure::Late)),
        })
        .await
    }

    fn poll(&self, cx: &Context<'_>) -> Option<FoundResult> {
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
    known_names: Option<&Arc<FolderNames>>,
    now: Now,
    waiting: &AtomicUsize,
) -> Found {
    let WorkFolder { threads, mut root, settings, limits, .. } = folder;
    let is_wanted = || waiting.load(Ordering::Relaxed) > 0;
    let (mut loaded, mut file) = (Ok(Loaded::Nothing), Vec::new());
    if is_wanted() {
        if root.is_remote() {
            root.look_up();
        }
        let repeats = if work.is_patient { OPEN_WAIT_S_MAX * 1000 / OPEN_RETRY_MS } else { 0 };
        let patience =
            Patience { hook: threads.hook, is_wanted: &is_wanted, repeats_left: Cell::new(repeats) };
        let accepted = || work.accepted.iter().map(|value| &value[..]);
        let load = Load {
            disk: Disk::on_thread(&root, &patience),
            settings: &settings,
            limits,
            name: &work.name,
            shape: work.shape,
            query: work.query.as_deref(),
            choose: &|codings| choose_coding(accepted(), codings, &settings.codings),
            known: None,
            known_names,
            now,
        };
        loaded = load.load(&mut file);
    }
    if !is_wanted() {
        loaded = Ok(Loaded::Nothing);
    }
    Found { root, now, loaded, file, is_patient: work.is_patient }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::{Arc, Barrier};
    use std::task::{Context, Waker};

    use shearwater_io::fs::Root;

    use super::{DiskWork, Found, FoundResult, Job, WaitingRequest, WorkFolder};
    use crate::compressions::Compressions;
    use crate::disk::DiskThreads;
    use crate::disk::load::Loaded;
    use crate::disk::worker::DiskFailure;
    use crate::limits::{CacheLimits, DISK_THREADS_MAX, DISK_WAITING_MAX};
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

    fn poll(job: &WaitingRequest) -> Option<FoundResult> {
        job.poll(&Context::from_waker(Waker::noop()))
    }

    fn finish(job: &WaitingRequest) -> FoundResult {
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
        assert_eq!(rejected.err(), Some(DiskFailure::Busy));
        assert!(waiting.iter().all(|job| poll(job).is_none()));
        gate.wait();
        assert!(hanging.iter().chain(&waiting).all(|job| finish(job).is_ok()));
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
        let found = finish(&second).expect("a result");
        assert!(matches!(found.loaded, Ok(Loaded::Nothing)) && found.file == b"hang");
        drop(second);
        assert!(begun.found.borrow().is_none(), "the last request has taken it");
        while !never_begun.is_finished() {
            std::thread::yield_now();
        }
        let found = never_begun.found.borrow().clone().expect("a result");
        assert!(found.is_ok_and(|found| found.file.is_empty()));
    }

    #[test]
    fn a_panic_is_a_failure() {
        let temporary = tempfile::tempdir().expect("a folder");
        let hook = |_: &[u8]| std::panic::resume_unwind(Box::new("on purpose"));
        let folder = folder(temporary.path(), DiskThreads::with_hook(hook));
        assert_eq!(finish(&start(&folder, "f")).err(), Some(DiskFailure::Panicked));
    }

    #[test]
    fn reads_files_for_the_cache_only() {
        let temporary = tempfile::tempdir().expect("a folder");
        let cached_max = CacheLimits::default().cached_file_bytes_max as usize;
        for (len, is_read) in [(cached_max, true), (cached_max + 1, false)] {
            std::fs::write(temporary.path().join("f"), vec![1; len]).expect("written");
            let found = finish(&start(&folder(temporary.path(), DiskThreads::new()), "f"));
            let found: Rc<Found> = found.expect("a result");
            let Ok(Loaded::File(file)) = &found.loaded else { panic!("it is there") };
            assert_eq!(file.plain.meta.len, len as u64);
            assert_eq!(file.plain.bytes.as_deref(), is_read.then_some(&vec![1; len][..]), "{len}");
        }
    }
}
