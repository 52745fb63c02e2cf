//! Writes messages to standard error, and waits a bounded time for who reads it.
//!
//! Messages come from the threads that handle signals, reloads and the access log. If the reader of standard error hangs,
//! these must still drain the server.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest wait for a pipe or terminal that takes nothing. While it does so, further messages don't wait.
const MESSAGE_WAIT_MAX: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Bytes that a pipe takes without blocking once it is reported as writable (POSIX's `PIPE_BUF`, on Linux).
const PIPE_BYTES: usize = 4096;

/// Standard error, or another destination in tests.
#[derive(Debug)]
pub(super) struct Output {
    /// The last message wasn't taken in time.
    is_stuck: bool,
    /// Messages that weren't written since the last one that was.
    lost: u64,
    /// A message was written in part.
    is_cut: bool,
}

impl Output {
    pub(super) const fn new() -> Self {
        Self { is_stuck: false, lost: 0, is_cut: false }
    }

    /// Returns the number of lost messages once they can be reported.
    pub(super) fn take_lost(&mut self) -> Option<u64> {
        let can_report = self.lost > 0 && is_writable(&io::stderr(), &Timespec::default());
        can_report.then(|| std::mem::take(&mut self.lost))
    }

    /// Writes a message to standard error, or counts it as lost.
    pub(super) fn write(&mut self, message: &[u8]) {
        self.write_to(&mut io::stderr(), message);
    }

    fn write_to(&mut self, to: &mut (impl Write + AsFd), message: &[u8]) {
        let line_end: &[u8] = if self.is_cut { b"\n" } else { b"" };
        let whole = [line_end, message].concat();
        for (index, piece) in whole.chunks(PIPE_BYTES).enumerate() {
            let wait = if self.is_stuck { Timespec::default() } else { MESSAGE_WAIT_MAX };
            self.is_stuck = !is_writable(to, &wait);
            if self.is_stuck {
                self.is_cut |= index > 0;
                self.lost += 1;
                return;
            }
            // A closed standard error is no reason to stop serving.
            drop(to.write_all(piece));
        }
        self.is_cut = false;
    }
}

/// Returns true once `to` takes bytes, or fails; false after `wait`.
fn is_writable(to: &impl AsFd, wait: &Timespec) -> bool {
    poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(wait)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::time::{Duration, Instant};

    use super::Output;

    #[test]
    fn a_reader_that_hangs_delays_one_message_and_loses_the_next() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let mut output = Output::new();
        let message = "x".repeat(10_000) + "\n";
        let start = Instant::now();
        for _ in 0..100 {
            output.write_to(&mut writer, message.as_bytes());
        }
        // One wait of a second, and not a hundred.
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let lost = output.lost;
        assert!((90..100).contains(&lost), "{lost}");
        assert!(output.is_stuck);

        // What was cut ends at a line's end.
        let mut read = vec![0; 1 << 16];
        let count = reader.read(&mut read).expect("bytes");
        output.write_to(&mut writer, b"after\n");
        assert!(!output.is_stuck && !output.is_cut);
        drop(writer);
        let mut text = String::from_utf8_lossy(&read[..count]).into_owned();
        reader.read_to_string(&mut text).expect("UTF-8");
        assert!(text.ends_with("x\nafter\n"), "{} bytes", text.len());
        assert_eq!(text.lines().filter(|line| line.len() == 10_000).count() as u64, 100 - lost);
    }
}
