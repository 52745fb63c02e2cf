//! Writes messages to standard error, and waits a bounded time for who reads it.
//!
//! Messages come from the threads that handle signals, reloads and the access log. If the reader of standard error hangs,
//! these must still drain the server.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Longest wait of a message for a pipe or terminal that is slow. While it takes nothing, further messages don't wait.
const MESSAGE_WAIT_MAX: Duration = Duration::from_secs(1);

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
        let can_report = self.lost > 0 && is_writable(&io::stderr(), Instant::now());
        can_report.then(|| std::mem::take(&mut self.lost))
    }

    /// Writes a message to standard error, or counts it as lost.
    pub(super) fn write(&mut self, message: &[u8]) {
        self.write_to(&mut io::stderr(), message, MESSAGE_WAIT_MAX);
    }

    fn write_to(&mut self, to: &mut (impl Write + AsFd), message: &[u8], wait_max: Duration) {
        let now = Instant::now();
        let deadline = if self.is_stuck { now } else { now + wait_max };
        let line_end: &[u8] = if self.is_cut { b"\n" } else { b"" };
        let whole = [line_end, message].concat();
        for (index, piece) in whole.chunks(PIPE_BYTES).enumerate() {
            self.is_stuck = !is_writable(to, deadline);
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

/// Returns true once `to` takes bytes, or fails; false at the deadline.
fn is_writable(to: &impl AsFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&wait)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{MESSAGE_WAIT_MAX, Output, PIPE_BYTES};

    #[test]
    fn the_pieces_of_a_message_share_one_wait() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let slow_reader = thread::spawn(move || {
            let mut piece = [0; PIPE_BYTES];
            while reader.read(&mut piece).expect("bytes") > 0 {
                // Time passes, and that is all that a slow reader does.
                thread::park_timeout(Duration::from_millis(20));
            }
        });
        let mut output = Output::new();
        // Each piece is taken within the wait, and all of them together in ten times of it.
        output.write_to(&mut writer, &[b'x'; 100 * PIPE_BYTES], Duration::from_millis(150));
        assert_eq!((output.lost, output.is_cut), (1, true));
        drop(writer);
        slow_reader.join().expect("no panic");
    }

    #[test]
    fn a_reader_that_hangs_delays_one_message_and_loses_the_next() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let mut output = Output::new();
        let message = "x".repeat(10_000) + "\n";
        let start = Instant::now();
        for _ in 0..100 {
            output.write_to(&mut writer, message.as_bytes(), MESSAGE_WAIT_MAX);
        }
        // One wait of a second, and not a hundred.
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let lost = output.lost;
        assert!((90..100).contains(&lost), "{lost}");
        assert!(output.is_stuck);

        // What was cut ends at a line's end.
        let mut read = vec![0; 1 << 16];
        let count = reader.read(&mut read).expect("bytes");
        output.write_to(&mut writer, b"after\n", MESSAGE_WAIT_MAX);
        assert!(!output.is_stuck && !output.is_cut);
        drop(writer);
        let mut text = String::from_utf8_lossy(&read[..count]).into_owned();
        reader.read_to_string(&mut text).expect("UTF-8");
        assert!(text.ends_with("x\nafter\n"), "{} bytes", text.len());
        assert_eq!(text.lines().filter(|line| line.len() == 10_000).count() as u64, 100 - lost);
    }
}
