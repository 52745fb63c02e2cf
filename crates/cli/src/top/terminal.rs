//! The terminal while `shearwater top` uses it: alternate screen, keys without echo, its size.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::top::style;

/// Switches to the alternate screen, hides the cursor, and cuts lines at the edge.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";

/// Undoes [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Size of a terminal that doesn't report one.
const SIZE: (usize, usize) = (80, 24);

/// Largest number of columns and rows that are drawn.
const SIDE_MAX: usize = 1000;

/// A terminal in raw mode. Dropping it restores it.
pub(crate) struct Terminal {
    before: Termios,
}

impl Terminal {
    /// Returns whether standard input and output are a terminal that understands escape sequences.
    pub(crate) fn is_available() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal() && !style::is_dumb()
    }

    /// Takes the terminal. In raw mode Ctrl-C is a key, so that nothing ends the program before it has restored it.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let terminal = Self { before };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    /// Returns columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let (columns, rows) = size.map_or(SIZE, |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        (columns.min(SIDE_MAX), rows.min(SIDE_MAX))
    }

    /// Waits for a key, and returns whether it is one that quits. A closed terminal quits too.
    pub(crate) fn is_left(&self, wait: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut keys, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        let count = rustix::io::read(&stdin, &mut bytes)?;
        Ok(count == 0 || bytes[..count].iter().any(|byte| matches!(*byte, b'q' | b'Q' | CTRL_C | CTRL_D)))
    }

    /// Draws lines over the previous ones.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (index, line) in lines.iter().enumerate() {
            frame.push_str(if index > 0 { "\r\n" } else { "" });
            frame.push_str(line);
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        self.write(&frame)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        drop(self.write(LEAVE));
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
