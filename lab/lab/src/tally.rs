//! What a client counted in one run: one line that wrk's script and our own client both print.

use std::fmt::{self, Display};

use crate::counts::Counts;

/// How the line begins.
pub const MARK: &str = "lab-tally";

/// A client's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answers received whole.
    pub responses: u64,
    /// Bytes received, those of unfinished answers included.
    pub bytes: u64,
    /// From the first connection to the end.
    pub duration_us: u64,
    /// Connections that could not be made.
    pub connect_errors: u64,
    /// Receives that failed, ended early, or brought what is no answer.
    pub read_errors: u64,
    /// Sends that failed.
    pub write_errors: u64,
    /// Answers that did not come in time.
    pub timeouts: u64,
    /// Answers with another status than the one expected.
    pub status_errors: u64,
    /// The smallest receive buffer that a connection was granted; 0 where none was asked for. No count, but what the counts hang on.
    pub receive_buffer_bytes: u64,
}

impl Tally {
    /// Errors of sockets: all that are no answers.
    pub fn socket_errors(&self) -> u64 {
        self.connect_errors + self.read_errors + self.write_errors + self.timeouts
    }

    /// Finds and reads the line in a client's output.
    pub fn parse(output: &str) -> Option<Self> {
        let counts = Counts::find(output, MARK)?;
        let field = |name: &str| {
            // Lua writes large numbers with a fraction or an exponent.
            let value: f64 = counts.text(name)?.parse().ok()?;
            (value >= 0.0 && value.is_finite()).then_some(value.round() as u64)
        };
        Some(Self {
            responses: field("responses")?,
            bytes: field("bytes")?,
            duration_us: field("duration_us")?,
            connect_errors: field("connect_errors")?,
            read_errors: field("read_errors")?,
            write_errors: field("write_errors")?,
            timeouts: field("timeouts")?,
            status_errors: field("status_errors")?,
            receive_buffer_bytes: field("receive_buffer_bytes")?,
        })
    }
}

impl Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{MARK} responses={} bytes={} duration_us={} connect_errors={} read_errors={} write_errors={} \
             timeouts={} status_errors={} receive_buffer_bytes={}",
            self.responses,
            self.bytes,
            self.duration_us,
            self.connect_errors,
            self.read_errors,
            self.write_errors,
            self.timeouts,
            self.status_errors,
            self.receive_buffer_bytes
        )
    }
}
