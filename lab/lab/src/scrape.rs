//! Reads a server's metrics once a second while it is measured, as Prometheus would.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time before the first reading: a window of a second has one in its middle.
const FIRST: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum wait for the socket.
const TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";

/// A thread that reads the metrics.
#[derive(Debug)]
pub(crate) struct Scraper {
    stop: SyncSender<()>,
    thread: JoinHandle<Result<u32, String>>,
}

impl Scraper {
    /// Starts reading from a Unix socket.
    pub(crate) fn start(socket: PathBuf) -> Self {
        let (stop, stopped) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            let (mut wait, mut readings) = (FIRST, 0);
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                read(&socket).map_err(|error| format!("metrics: {}: {error}", socket.display()))?;
                (wait, readings) = (INTERVAL, readings + 1);
            }
            Ok(readings)
        });
        Self { stop, thread }
    }

    /// Ends it and returns the number of readings.
    ///
    /// # Errors
    ///
    /// The reason if a reading failed.
    pub(crate) fn end(self) -> Result<u32, String> {
        drop(self.stop);
        self.thread.join().map_err(|_| "metrics: the reading thread panicked".to_owned())?
    }
}

/// Reads the metrics once.
fn read(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(REQUEST)?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    if response.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    let line = response.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(io::Error::other(format!("unexpected response: {}", String::from_utf8_lossy(line))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn rejects_a_response_other_than_200() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let responses = ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 Service Unavailable\r\n\r\n"];
        let server = std::thread::spawn(move || {
            for response in responses {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = vec![0; REQUEST.len()];
                stream.read_exact(&mut request).expect("a request");
                stream.write_all(response.as_bytes()).expect("a response");
            }
        });
        assert!(read(&path).is_ok());
        let error = read(&path).expect_err("a 503").to_string();
        assert_eq!(error, "unexpected response: HTTP/1.1 503 Service Unavailable");
        server.join().expect("the server");
    }
}
