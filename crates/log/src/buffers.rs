//! Buffers between workers and the writing thread: one for each worker, bounded.
//!
//! A worker formats its line into the buffer under a lock that the thread holds only to swap the buffer for an empty one. If
//! the lock is taken at that moment, the worker keeps its line and hands it over with the next one, so it never waits.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;

use crate::entry::Entry;
use crate::filter::Filter;
use crate::format::Format;
use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_WAKE_BYTES, SPARE_LOG_BYTES_MAX};
use crate::time::TimeCache;

/// Lines of one worker.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    lines: Mutex<Vec<u8>>,
    dropped: AtomicU64,
}

impl Buffer {
    /// Swaps its lines with an empty list.
    pub(crate) fn take(&self, empty: &mut Vec<u8>) {
        std::mem::swap(&mut *lock(&self.lines), empty);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.lines).is_empty()
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
    value_bytes_max: usize,
    time: TimeCache,
    /// Lines that could not be handed over yet.
    lines: Vec<u8>,
    /// Lines that were neither handed over nor dropped yet.
    count: u64,
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
        value_bytes_max: usize,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            buffer: shared.add(),
            format: Arc::clone(format),
            filter: Arc::clone(filter),
            value_bytes_max,
            time: TimeCache::default(),
            lines: Vec::new(),
            count: 0,
        }
    }

    /// Logs an entry, unless it is excluded. If the buffer is full, the line is dropped and counted.
    #[inline]
    pub fn log(&mut self, entry: &Entry<'_>) {
        if self.filter.excludes(entry) {
            return;
        }
        let Self { shared, buffer, format, value_bytes_max, time, lines, count, .. } = self;
        *count += 1;
        if let Some(mut held) = try_lock(&buffer.lines) {
            let before = held.len();
            held.append(lines);
            format.append_cut(&mut held, entry, time, *value_bytes_max);
            return hand_over(shared, buffer, held, before, count);
        }
        // The thread is swapping the buffer: the line follows with the next one.
        format.append_cut(lines, entry, time, *value_bytes_max);
        if lines.len() > LOG_BUFFER_BYTES_MAX {
            lines.clear();
            drop_lines(shared, buffer, count);
        }
    }
}

/// Leaves the lines after the first `before` bytes to the thread, or drops them if the buffer is full.
fn hand_over(
    shared: &Shared,
    buffer: &Buffer,
    mut held: MutexGuard<'_, Vec<u8>>,
    before: usize,
    count: &mut u64,
) {
    let after = held.len();
    if after > LOG_BUFFER_BYTES_MAX {
        held.truncate(before);
        drop(held);
        return drop_lines(shared, buffer, count);
    }
    drop(held);
    *count = 0;
    if before < LOG_WAKE_BYTES && after >= LOG_WAKE_BYTES {
        shared.wake();
    } else {
        shared.wake_if_idle();
    }
}

#[cold]
fn drop_lines(shared: &Shared, buffer: &Buffer, count: &mut u64) {
    buffer.dropped.fetch_add(std::mem::take(count), Ordering::Relaxed);
    shared.wake_if_idle();
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        let Self { shared, buffer, lines, count, .. } = self;
        let mut held = lock(&buffer.lines);
        let before = held.len();
        held.append(lines);
        hand_over(shared, buffer, held, before, count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Shared, lock, recycle};
    use crate::entry::Entry;
    use crate::format::Format;
    use crate::limits::{LOG_BUFFER_BYTES_MAX, LOG_VALUE_BYTES_MAX, SPARE_LOG_BYTES_MAX};

    #[test]
    fn frees_the_memory_of_a_burst() {
        let shared = Arc::<Shared>::default();
        let format = Arc::new(Format::parse("$uri").expect("a format"));
        let mut writer = super::LineWriter::new(&shared, &format, &Arc::default(), LOG_VALUE_BYTES_MAX);
        let target = vec![b'a'; 4000];
        let field = |_: &str| None;
        let mut batch = Vec::new();
        for _ in 0..3 {
            for _ in 0..LOG_BUFFER_BYTES_MAX / 4100 {
                writer.log(&Entry { target: &target, ..Entry::new(&field) });
            }
            let buffer = Arc::clone(&lock(&shared.buffers)[0]);
            buffer.take(&mut batch);
            assert!(batch.len() > LOG_BUFFER_BYTES_MAX / 2, "a burst of {} bytes", batch.len());
            recycle(&mut batch);
            let left = batch.capacity() + lock(&buffer.lines).capacity();
            assert!(left <= 2 * SPARE_LOG_BYTES_MAX, "{left} bytes are kept");
        }
        assert_eq!(shared.dropped(), 0);
    }
}
