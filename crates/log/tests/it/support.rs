//! Logs for tests, with the notices that they report.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use shearwater_log::{Destination, Entry, Filter, Format, LineWriter, Log, OpenError, Options};

/// Time after which a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// More notices than any test causes.
const NOTICES: usize = 1000;

/// A log of the targets of requests, and its notices.
pub(crate) struct TestLog {
    pub(crate) log: Log,
    notices: Receiver<String>,
}

impl TestLog {
    pub(crate) fn new(destination: &str) -> Self {
        Self::try_new(destination).expect("it opens")
    }

    pub(crate) fn try_new(destination: &str) -> Result<Self, OpenError> {
        Self::try_with_format(destination, "$request_uri")
    }

    pub(crate) fn with_format(destination: &str, format: &str) -> Self {
        Self::try_with_format(destination, format).expect("it opens")
    }

    fn try_with_format(destination: &str, format: &str) -> Result<Self, OpenError> {
        let (report, notices) = sync_channel(NOTICES);
        let options = Options {
            destination: Destination::parse(destination).expect("a destination"),
            format: Format::parse(format).expect("a format"),
            filter: Filter::default(),
        };
        let log = Log::start(options, move |notice| drop(report.send(notice.to_string())))?;
        Ok(Self { log, notices })
    }

    /// Logs a line by a worker of its own.
    pub(crate) fn write(&self, line: &str) {
        write(&mut self.log.line_writer(), line);
    }

    /// Waits for the next notice, which must have this text.
    #[track_caller]
    pub(crate) fn expect_notice(&self, text: &str) {
        let notice = self.notices.recv_timeout(PATIENCE).expect("a notice");
        assert!(notice.contains(text), "{notice}");
    }

    /// Returns the next notice, if there is one already.
    pub(crate) fn notice(&self) -> Option<String> {
        self.notices.try_recv().ok()
    }

    #[track_caller]
    pub(crate) fn expect_no_notice(&self) {
        assert_eq!(self.notice(), None);
    }

    /// Waits until so many lines are written.
    #[track_caller]
    pub(crate) fn until_written(&self, lines: u64) {
        until(|| self.log.counts().written >= lines);
    }
}

pub(crate) fn write(writer: &mut LineWriter, line: &str) {
    writer.log(&Entry { target: line.as_bytes(), ..Entry::new(&|_| None) });
}

#[track_caller]
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it took too long");
        std::thread::yield_now();
    }
}
