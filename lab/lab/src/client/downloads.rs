//! Large downloads beside the requests.

use std::io::{self, Error};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::{DOWNLOADS, LoadClient};

/// Maximum length of a download: beyond, its file has a hole, which costs the server other work.
pub(crate) const DOWNLOAD_BYTES_MAX: u64 = 176 << 20;

/// A large download, which is received as fast as possible and never finished.
pub(super) struct Download {
    socket: Socket,
    pub(super) bytes: u64,
    is_queued: bool,
}

impl LoadClient<'_> {
    pub(super) fn start_download(&mut self, target: &str) -> io::Result<()> {
        let socket = self.connect(DOWNLOADS + self.downloads.len() as u64, true)?;
        let request = format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n");
        if rustix::net::send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)? != request.len() {
            return Err(Error::other("the request of a download was cut"));
        }
        self.downloads.push(Download { socket, bytes: 0, is_queued: false });
        Ok(())
    }

    pub(super) fn queue_download(&mut self, number: usize) {
        let download = &mut self.downloads[number];
        if !std::mem::replace(&mut download.is_queued, true) {
            self.readable.push_back(number);
        }
    }

    /// Receives once. A failed socket, a wrong status, or a download that got too far is an error.
    pub(super) fn receive_download(&mut self, number: usize, buffer: &mut [u8]) {
        let download = &mut self.downloads[number];
        download.is_queued = false;
        let length = match rustix::net::recv(&download.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length @ 1.., _)) => length,
            Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => return self.counts.read_errors += 1,
        };
        let is_right = download.bytes > 0 || buffer[..length].starts_with(b"HTTP/1.1 200");
        download.bytes += length as u64;
        self.counts.read_errors += u64::from(!is_right || download.bytes > DOWNLOAD_BYTES_MAX);
        self.queue_download(number);
    }
}
