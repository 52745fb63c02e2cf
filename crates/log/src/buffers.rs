//! Buffers between workers and the writing thread: one for each worker, bounded.
//!
//! A buffer has two lists. A worker appends its line to the open one, under a lock that nobody else wants: the thread opens
//! the other list before it locks one to take its lines. So a worker never waits, and no line waits for the next one.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;

use crate::entry::Entry;
use crate::filter::Filter;
use crate::format::Format;
use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_LOCK_TRIES_MAX, LOG_WAKE_BYTES, SPARE_LOG_BYTES_MAX};
use crate::time::TimeCache;

/// Lines of one worker.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    lists: [Mutex<Vec<u8>>; 2],
    /// Index of the list that the worker appends to. The other one is empty but while its lines are being taken.
    open: AtomicUsize,
    dropped: AtomicU64,
}

impl Buffer {
    /// Swaps its lines with an empty list. Only the writing thread does.
    pub(crate) fn take(&self, empty: &mut Vec<u8>) {
        std::mem::swap(&mut *self.close(), empty);
    }

    /// Opens the other list; returns this one, once the worker has left it.
    fn close(&self) -> MutexGuard<'_, Vec<u8>> {
        let open = self.open.load(Ordering::Relaxed);
        self.open.store(1 - open, Ordering::SeqCst);
        lock(&self.lists[open])
    }

    /// Returns the open list, unless it is being closed again and again.
    #[inline]
    fn try_open(&self) -> Option<MutexGuard<'_, Vec<u8>>> {
        (0..LOG_LOCK_TRIES_MAX).find_map(|_| {
            let open = self.open.load(Ordering::SeqCst);
            // A list that was closed meanwhile would be taken after the lines of the other one.
            try_lock(&self.lists[open]).filter(|_| self.open.load(Ordering::SeqCst) == open)
        })
    }

    fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| lock(list).is_empty())
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// State that workers, the writing thread and the operator's thread share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) buffers: Mutex<Vec<Arc<Buffer>>>,
    /// The writing thread sleeps until it is woken.
    pub(crate) is_idle: AtomicBool,
    pub(crate) reopens: AtomicBool,
    pub(crate) ends: AtomicBool,
    /// A failure was reported, and not its end.
    pub(crate) is_failing: AtomicBool,
    /// Its reader takes nothing.
    pub(crate) is_stuck: AtomicBool,
    pub(crate) written: AtomicU64,
    /// Lines that were dropped by workers that have ended, or lost at the end.
    pub(crate) lost: AtomicU64,
    thread: OnceLock<Thread>,
}

impl Shared {
    /// Sets the writing thread.
    pub(crate) fn set_thread(&self, thread: &Thread) {
        self.thread.get_or_init(|| thread.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn wake_if_idle(&self) {
        if self.is_idle.load(Ordering::SeqCst) && self.is_idle.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Returns the lines dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        let of_buffers: u64 = lock(&self.buffers).iter().map(|buffer| buffer.dropped()).sum();
        of_buffers + self.lost.load(Ordering::Relaxed)
    }

    /// Adds a worker's buffer, and removes those whose worker has ended.
    fn add(&self) -> Arc<Buffer> {
        let mut buffers = lock(&self.buffers);
        buffers.retain(|buffer| {
            let is_used = Arc::strong_count(buffer) > 1 || !buffer.is_empty();
            if !is_used {
                self.lost.fetch_add(buffer.dropped(), Ordering::Relaxed);
            }
            is_used
        });
        let buffer = Arc::<Buffer>::default();
        buffers.push(Arc::clone(&buffer));
        buffer
    }
}

/// Empties a list of lines that were written, and frees most of its memory if it was a burst.
pub(crate) fn recycle(lines: &mut Vec<u8>) {
    lines.clear();
    lines.shrink_to(SPARE_LOG_BYTES_MAX);
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it is held leaves a part of a line behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A worker's end of a log: formats lines, and never blocks.
pub struct LineWriter {
    shared: Arc<Shared>,
    buffer: Arc<Buffer>,
    format: Arc<Format>,
    filter: Arc<Filter>,
    line_bytes_max: usize,
    time: TimeCache,
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").field("format", &self.format).finish_non_exhaustive()
    }
}

impl LineWriter {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        format: &Arc<Format>,
        filter: &Arc<Filter>,
        line_bytes_max: usize,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            buffer: shared.add(),
            format: Arc::clone(format),
            filter: Arc::clone(filter),
            line_bytes_max,
            time: TimeCache::default(),
        }
    }

    /// Logs an entry, unless it is excluded. If the buffer is full, the line is dropped and counted.
    #[inline]
    pub fn log(&mut self, entry: &Entry<'_>) {
        if self.filter.excludes(entry) {
            return;
        }
        let Self { shared, buffer, format, line_bytes_max, time, .. } = self;
        let Some(mut lines) = buffer.try_open() else { return drop_line(shared, buffer) };
        let before = lines.len();
        format.append_bounded(&mut lines, entry, time, *line_bytes_max);
        let after = lines.len();
        if after > LOG_BUFFER_BYTES_MAX {
            lines.truncate(before);
            drop(lines);
            return drop_line(shared, buffer);
        }
        drop(lines);
        if before < LOG_WAKE_BYTES && after >= LOG_WAKE_BYTES {
            shared.wake();
        } else {
            shared.wake_if_idle();
        }
    }
}

#[cold]
fn drop_line(shared: &Shared, buffer: &Buffer) {
    buffer.dropped.fetch_add(1, Ordering::Relaxed);
    shared.wake_if_idle();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{LineWriter, Shared, lock, recycle};
    use crate::entry::Entry;
    use crate::format::Format;
    use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_LINE_BYTES_MAX, SPARE_LOG_BYTES_MAX};

    fn writer(shared: &Arc<Shared>) -> LineWriter {
        let format = Arc::new(Format::parse("$uri").expect("a format"));
        LineWriter::new(shared, &format, &Arc::default(), LOG_LINE_BYTES_MAX)
    }

    fn log(writer: &mut LineWriter, target: &str) {
        writer.log(&Entry { target: target.as_bytes(), ..Entry::new(&|_| None) });
    }

    /// The writing thread takes lines at the moment in which the last request of a quiet server is logged.
    #[test]
    fn a_line_that_meets_the_writing_thread_waits_for_no_further_line() {
        let shared = Arc::<Shared>::default();
        let mut writer = writer(&shared);
        let buffer = Arc::clone(&lock(&shared.buffers)[0]);
        let mut batch = Vec::new();
        log(&mut writer, "/1");
        let mut taken = buffer.close();
        log(&mut writer, "/2");
        std::mem::swap(&mut *taken, &mut batch);
        drop(taken);
        assert_eq!(batch, b"/1\n");
        batch.clear();
        buffer.take(&mut batch);
        assert_eq!((&batch[..], shared.dropped()), (&b"/2\n"[..], 0));
    }

    #[test]
    fn lines_of_a_worker_keep_their_order_whenever_they_are_taken() {
        const LINES: usize = 20_000;
        let shared = Arc::<Shared>::default();
        let mut writer = writer(&shared);
        let buffer = Arc::clone(&lock(&shared.buffers)[0]);
        let mut taken = Vec::new();
        let mut take = || {
            let mut batch = Vec::new();
            buffer.take(&mut batch);
            taken.append(&mut batch);
        };
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                (0..LINES).for_each(|line| log(&mut writer, &format!("/{line}")));
            });
            while !worker.is_finished() {
                take();
            }
        });
        (0..2).for_each(|_| take());
        let taken = String::from_utf8(taken).expect("UTF-8");
        let numbers: Vec<usize> = taken.lines().map(|line| line[1..].parse().expect("a number")).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "out of order");
        assert_eq!(numbers.len() + shared.dropped() as usize, LINES);
    }

    #[test]
    fn drops_a_line_after_a_bounded_number_of_tries() {
        let shared = Arc::<Shared>::default();
        let mut writer = writer(&shared);
        let buffer = Arc::clone(&lock(&shared.buffers)[0]);
        let held = buffer.lists.each_ref().map(lock);
        log(&mut writer, "/");
        assert_eq!(shared.dropped(), 1);
        drop(held);
    }

    #[test]
    fn frees_the_memory_of_a_burst() {
        let shared = Arc::<Shared>::default();
        let mut writer = writer(&shared);
        let target = "a".repeat(4000);
        let mut batch = Vec::new();
        for _ in 0..3 {
            for _ in 0..LOG_BUFFER_BYTES_MAX / 4100 {
                log(&mut writer, &target);
            }
            let buffer = Arc::clone(&lock(&shared.buffers)[0]);
            buffer.take(&mut batch);
            assert!(batch.len() > LOG_BUFFER_BYTES_MAX / 2, "a burst of {} bytes", batch.len());
            recycle(&mut batch);
            let left = batch.capacity()
                + buffer.lists.each_ref().map(|list| lock(list).capacity()).iter().sum::<usize>();
            assert!(left <= 3 * SPARE_LOG_BYTES_MAX, "{left} bytes are kept");
        }
        assert_eq!(shared.dropped(), 0);
    }
}
