//! The thread that writes the lines of all workers in batches, and reports what goes wrong.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use crate::buffers::{LineWriter, Shared, lock, recycle};
use crate::destination::{Destination, OpenError, Sink, help, is_without_reader};
use crate::filter::Filter;
use crate::format::Format;
use crate::limits::{
    LOG_BUFFER_BYTES_MAX, LOG_END_WAIT_MAX, LOG_INTERVAL, LOG_LINE_BYTES_MAX, LOG_RETRY_INTERVAL,
    SYSLOG_LINE_BYTES_MAX,
};

/// Options of a log.
#[derive(Debug, Clone)]
pub struct Options {
    /// Destination.
    pub destination: Destination,
    /// Format of the lines.
    pub format: Format,
    /// Entries that aren't logged.
    pub filter: Filter,
}

/// Counts of a log since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Lines written.
    pub written: u64,
    /// Lines dropped because a buffer was full, or lost at the end.
    pub dropped: u64,
    /// The destination can't be written to now, or its reader has taken nothing for a second.
    pub is_failing: bool,
}

/// A message for the operator.
#[derive(Debug)]
pub struct LogNotice {
    /// Destination of the log.
    pub destination: Destination,
    /// Its event.
    pub event: LogEvent,
}

/// An event of a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogEvent {
    /// The destination can't be written to. Lines wait in the buffers.
    Failing(io::Error),
    /// The destination can't be opened again. The previous file is still written to.
    NotReopened(io::Error),
    /// The destination is written to again.
    Recovered,
    /// A buffer is full and lines are dropped.
    Dropping,
    /// Lines are no longer dropped; so many were.
    Dropped(u64),
}

impl LogEvent {
    /// Returns a stable name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Failing(_) => "log_failing",
            Self::NotReopened(_) => "log_not_reopened",
            Self::Recovered => "log_recovered",
            Self::Dropping => "log_dropping",
            Self::Dropped(_) => "log_dropped",
        }
    }
}

impl fmt::Display for LogNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, event } = self;
        match event {
            LogEvent::Failing(error) => write!(
                f,
                "can't write the access log {destination}: {error}; requests are served, and up to \
                 {LOG_BUFFER_BYTES_MAX} bytes of lines per worker wait for it; help: {}",
                help(destination, error)
            ),
            LogEvent::NotReopened(error) => write!(
                f,
                "can't reopen the access log {destination}: {error}; the previous file is still written to; help: {}",
                help(destination, error)
            ),
            LogEvent::Recovered => write!(f, "the access log {destination} is written again"),
            LogEvent::Dropping => {
                write!(f, "the access log {destination} is too slow: lines are being dropped")
            }
            LogEvent::Dropped(lines) => {
                write!(f, "{lines} lines of the access log {destination} were dropped")
            }
        }
    }
}

/// A log. Dropping it ends it, after [`end`](Self::end) at the latest.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    format: Arc<Format>,
    filter: Arc<Filter>,
    line_bytes_max: usize,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Log {
    /// Opens the destination and starts the writing thread, which calls `report` for each notice.
    ///
    /// A named pipe without a reader and a daemon that doesn't run are notices: they are tried again.
    ///
    /// # Errors
    /// If the destination can't be opened, or the thread can't be started.
    pub fn start(options: Options, report: impl Fn(&LogNotice) + Send + 'static) -> Result<Self, OpenError> {
        let Options { destination, format, filter } = options;
        let failed = |error| OpenError { destination: destination.clone(), error };
        let (sink, failure) = match Sink::open(&destination) {
            Ok(sink) => (Some(sink), None),
            Err(error) if is_transient(&destination, &error) => (None, Some(error)),
            Err(error) => return Err(failed(error)),
        };
        let shared = Arc::new(Shared::default());
        let (end, ended) = sync_channel(1);
        let mut writer = Writer {
            shared: Arc::clone(&shared),
            destination: destination.clone(),
            sink,
            batch: Vec::new(),
            done: 0,
            reopens_from: None,
            checked: Instant::now(),
            drops: Drops::default(),
            report: Box::new(report),
            _end: end,
        };
        if let Some(error) = failure {
            writer.fail(error);
        }
        let thread = thread::Builder::new().name("access-log".to_owned()).spawn(move || writer.run());
        let thread = thread.map_err(failed)?;
        shared.set_thread(thread.thread());
        let line_bytes_max = match destination {
            Destination::Syslog(_) => SYSLOG_LINE_BYTES_MAX,
            Destination::File(_) | Destination::Stdout | Destination::Stderr => LOG_LINE_BYTES_MAX,
        };
        let (format, filter, ended) = (Arc::new(format), Arc::new(filter), Mutex::new(ended));
        Ok(Self { shared, format, filter, line_bytes_max, ended })
    }

    /// Returns a worker's end of the log.
    #[must_use]
    pub fn line_writer(&self) -> LineWriter {
        LineWriter::new(&self.shared, &self.format, &self.filter, self.line_bytes_max)
    }

    /// Opens the destination again, after the lines that are waiting: for a file that was renamed.
    pub fn reopen(&self) {
        self.shared.reopens.store(true, Ordering::SeqCst);
        self.shared.wake();
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let written = self.shared.written.load(Ordering::Relaxed);
        let is_set = |state: &AtomicBool| state.load(Ordering::Relaxed);
        let is_failing = is_set(&self.shared.is_failing) || is_set(&self.shared.is_stuck);
        Counts { written, dropped: self.shared.dropped(), is_failing }
    }

    /// Writes what is waiting and ends the thread; returns the counts. Waits at most
    /// [`LOG_END_WAIT_MAX`](crate::limits::LOG_END_WAIT_MAX): lines that are not written by then are lost.
    pub fn end(&self) -> Counts {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.shared.wake();
        // Disconnected, or too late.
        let _ = lock(&self.ended).recv_timeout(LOG_END_WAIT_MAX);
        self.counts()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.shared.wake();
    }
}

/// Returns true for an error at the start that ends when another program starts.
fn is_transient(destination: &Destination, error: &io::Error) -> bool {
    match destination {
        Destination::Syslog(_) => {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
        }
        Destination::File(_) => is_without_reader(destination, error),
        Destination::Stdout | Destination::Stderr => false,
    }
}

/// Lines that were dropped, as far as they are reported.
#[derive(Debug, Default)]
struct Drops {
    /// All of them at the last look, and at the last report of an end.
    seen: u64,
    reported: u64,
    /// Time of the last change, while they are being dropped.
    since: Option<Instant>,
    last_report: Option<Instant>,
}

/// State of the writing thread.
struct Writer {
    shared: Arc<Shared>,
    destination: Destination,
    /// `None` if it could not be opened.
    sink: Option<Sink>,
    /// Lines that are being written, and the bytes of them that are.
    batch: Vec<u8>,
    done: usize,
    /// The destination is to be opened again from this time on.
    reopens_from: Option<Instant>,
    /// Time at which the file was last checked for its name.
    checked: Instant,
    drops: Drops,
    report: Box<dyn Fn(&LogNotice) + Send>,
    /// Dropped with the thread's state.
    _end: SyncSender<()>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let ends = self.shared.ends.load(Ordering::SeqCst);
            let has_written = self.write_all();
            self.reopen_if_asked();
            self.report_drops();
            if ends {
                return self.lose_rest();
            }
            self.sleep(has_written);
        }
    }

    /// Sleeps until the next batch, the next retry, or the next line.
    fn sleep(&mut self, has_written: bool) {
        let is_stuck = self.done < self.batch.len();
        let is_failing = self.shared.is_failing.load(Ordering::Relaxed);
        if is_stuck || is_failing || self.reopens_from.is_some() || self.drops.since.is_some() {
            return thread::park_timeout(if is_stuck && !is_failing {
                LOG_INTERVAL
            } else {
                LOG_RETRY_INTERVAL
            });
        }
        if has_written {
            return thread::park_timeout(LOG_INTERVAL);
        }
        self.shared.is_idle.store(true, Ordering::SeqCst);
        // A line of this moment has woken nobody.
        let is_woken = self.write_all()
            || self.shared.ends.load(Ordering::SeqCst)
            || self.shared.reopens.load(Ordering::SeqCst);
        if !is_woken {
            thread::park();
        }
        self.shared.is_idle.store(false, Ordering::SeqCst);
    }

    /// Writes the lines of all buffers, as far as the destination takes them; returns true if there were any.
    fn write_all(&mut self) -> bool {
        let mut has_written = false;
        // A destination that wasn't there at the start is tried again without a line too.
        let is_missing = self.sink.is_none() && self.shared.is_failing.load(Ordering::Relaxed);
        if is_missing && self.batch.is_empty() && self.check_sink().is_ok() {
            self.recover();
        }
        let buffers = lock(&self.shared.buffers).clone();
        if !self.write_batch() {
            return true;
        }
        for buffer in buffers {
            buffer.take(&mut self.batch);
            has_written |= !self.batch.is_empty();
            if !self.write_batch() {
                return true;
            }
        }
        has_written
    }

    /// Writes the rest of the batch, and empties it; returns false if the destination doesn't take all of it now.
    fn write_batch(&mut self) -> bool {
        while self.done < self.batch.len() {
            if let Err(error) = self.check_sink() {
                self.fail(error);
                return false;
            }
            let Some(sink) = &mut self.sink else { return false };
            match sink.write(&self.batch[self.done..]) {
                Ok(taken) => {
                    let lines = count_lines(&self.batch[self.done..self.done + taken]);
                    self.shared.written.fetch_add(lines, Ordering::Relaxed);
                    self.done += taken;
                    self.shared.is_stuck.store(false, Ordering::Relaxed);
                    self.recover();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.shared.is_stuck.store(true, Ordering::Relaxed);
                    self.report_drops();
                    return false;
                }
                Err(error) => {
                    // A daemon that was restarted has another socket.
                    if matches!(sink, Sink::Syslog(_)) {
                        self.sink = None;
                    }
                    self.fail(error);
                    return false;
                }
            }
        }
        recycle(&mut self.batch);
        self.done = 0;
        true
    }

    /// Opens the destination if it isn't open, or if its file was removed.
    fn check_sink(&mut self) -> io::Result<()> {
        if let Some(sink) = &self.sink {
            if self.checked.elapsed() < LOG_RETRY_INTERVAL {
                return Ok(());
            }
            self.checked = Instant::now();
            if !sink.is_removed() {
                return Ok(());
            }
            self.sink = None;
        }
        self.sink = Some(Sink::open(&self.destination)?);
        self.rewind();
        Ok(())
    }

    /// Begins a line that was cut by a failure again: its first part is in another file.
    fn rewind(&mut self) {
        let line = self.batch[..self.done].iter().rposition(|byte| *byte == b'\n');
        self.done = line.map_or(0, |end| end + 1);
    }

    /// Opens the destination again if the operator has asked for it.
    fn reopen_if_asked(&mut self) {
        let is_asked = self.shared.reopens.swap(false, Ordering::SeqCst);
        let is_due = self.reopens_from.is_some_and(|from| from <= Instant::now());
        if !is_asked && !is_due {
            return;
        }
        match Sink::open(&self.destination) {
            Ok(sink) => {
                if self.sink.as_ref().is_none_or(|before| !before.is_same(&sink)) {
                    self.rewind();
                }
                self.sink = Some(sink);
                if self.reopens_from.take().is_some() {
                    self.notify(LogEvent::Recovered);
                }
            }
            // The failure of writing is reported already, and opening is tried again anyway.
            Err(_) if self.sink.is_none() => {}
            Err(error) => {
                let is_first = self.reopens_from.is_none();
                self.reopens_from = Some(Instant::now() + LOG_RETRY_INTERVAL);
                if is_first {
                    self.notify(LogEvent::NotReopened(error));
                }
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        if !self.shared.is_failing.swap(true, Ordering::Relaxed) {
            self.notify(LogEvent::Failing(error));
        }
    }

    fn recover(&mut self) {
        if self.shared.is_failing.load(Ordering::Relaxed) {
            self.notify(LogEvent::Recovered);
            self.shared.is_failing.store(false, Ordering::Relaxed);
        }
    }

    /// Reports when lines begin and cease to be dropped, at most once a second.
    fn report_drops(&mut self) {
        let dropped = self.shared.dropped();
        let now = Instant::now();
        let is_quiet = self.drops.last_report.is_some_and(|last| now - last < LOG_RETRY_INTERVAL);
        if dropped > self.drops.seen {
            self.drops.seen = dropped;
            if self.drops.since.replace(now).is_none() && !is_quiet {
                self.drops.last_report = Some(now);
                self.notify(LogEvent::Dropping);
            }
        } else if self.drops.since.is_some_and(|since| now - since >= LOG_RETRY_INTERVAL) && !is_quiet {
            self.drops.since = None;
            self.drops.last_report = Some(now);
            let lines = dropped - std::mem::replace(&mut self.drops.reported, dropped);
            self.notify(LogEvent::Dropped(lines));
        }
    }

    fn notify(&self, event: LogEvent) {
        (self.report)(&LogNotice { destination: self.destination.clone(), event });
    }

    /// Counts the lines that can't be written before the end.
    fn lose_rest(&mut self) {
        let mut rest = self.batch.split_off(self.done);
        for buffer in lock(&self.shared.buffers).iter() {
            let mut lines = Vec::new();
            buffer.take(&mut lines);
            rest.append(&mut lines);
        }
        let lost = count_lines(&rest);
        self.shared.lost.fetch_add(lost, Ordering::Relaxed);
        let lines = self.shared.dropped() - self.drops.reported;
        if lines > 0 {
            self.notify(LogEvent::Dropped(lines));
        }
    }
}

/// Counts line ends. A byte counts those of up to 255, so that the compiler adds many at once.
fn count_lines(bytes: &[u8]) -> u64 {
    let of_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(u8::MAX.into()).map(|chunk| u64::from(of_chunk(chunk))).sum()
}
