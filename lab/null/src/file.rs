//! A response whose body is a file: opened once, sent by `sendfile` after the head.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::response::head;

/// A head of a chosen length, and the file after it.
#[derive(Debug)]
pub(crate) struct FileResponse {
    head: Vec<u8>,
    file: File,
}

impl FileResponse {
    /// Opens a file for responses of `bytes`, head included.
    ///
    /// # Errors
    ///
    /// The file can't be opened, or leaves no room for a head.
    pub(crate) fn open(path: &Path, bytes: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let head = bytes.checked_sub(length).and_then(|head_bytes| head(head_bytes, length));
        let head = head
            .ok_or_else(|| io::Error::other(format!("no head fits {bytes} bytes with a body of {length}")))?;
        Ok(Self { head, file })
    }

    /// Sends what the socket takes of the response's bytes from `start` on.
    pub(crate) fn send(&self, socket: &OwnedFd, start: usize, bytes: usize) -> Result<usize, Errno> {
        if let Some(rest @ [_, ..]) = self.head.get(start..) {
            // Held back, so that it leaves with the file's first bytes.
            return send(socket, rest, SendFlags::NOSIGNAL | SendFlags::MORE);
        }
        let mut offset = (start - self.head.len()) as u64;
        match sendfile(socket, &self.file, Some(&mut offset), bytes - start) {
            // The file has become shorter.
            Ok(0) => Err(Errno::IO),
            sent => sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn head_and_file_are_sent_from_any_offset() {
        let path = std::env::temp_dir().join(format!("null-file-{}", std::process::id()));
        File::create(&path).and_then(|mut file| file.write_all(b"0123456789")).expect("a file");
        let response = FileResponse::open(&path, 100).expect("a head of 90 bytes fits");
        assert!(FileResponse::open(&path, 20).is_err());
        std::fs::remove_file(&path).expect("it is there");
        let (socket, mut client) = UnixStream::pair().expect("a pair");
        let socket = OwnedFd::from(socket);
        let mut start = 0;
        while start < 100 {
            start += response.send(&socket, start, 100).expect("it is taken");
        }
        assert_eq!(response.send(&socket, 97, 100), Ok(3));
        let mut received = [0; 103];
        client.read_exact(&mut received).expect("it is sent");
        assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n") && received.ends_with(b"\r\n\r\n0123456789789"));
    }
}
