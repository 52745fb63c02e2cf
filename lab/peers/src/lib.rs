//! Command line, listener, worker and allocator of all peers.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use mimalloc::MiMalloc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Room for a burst of ten thousand connections, the same for all servers of the lab.
pub const BACKLOG: u32 = 16_384;

/// Threads for files beside the worker: tokio's own default.
const FILE_THREADS: usize = 512;

/// Response body of the servers without files.
pub const PLAINTEXT: &str = "Hello, World!";

/// Command line: the address, and for servers of files the folder and the number of threads for files.
#[derive(Debug)]
pub struct PeerSettings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Served folder.
    pub folder: Option<PathBuf>,
    /// Maximum number of threads for files.
    pub file_threads: usize,
}

impl PeerSettings {
    /// Parses `ADDRESS:PORT [FOLDER [FILE_THREADS]]`.
    ///
    /// # Errors
    /// The address is missing or malformed.
    pub fn from_arguments() -> io::Result<Self> {
        let mut arguments = std::env::args().skip(1);
        let listen = arguments.next().and_then(|text| text.parse().ok());
        let listen =
            listen.ok_or_else(|| io::Error::other("usage: PEER ADDRESS:PORT [FOLDER [FILE_THREADS]]"))?;
        let folder = arguments.next().map(PathBuf::from);
        let threads = arguments.next().and_then(|text| text.parse().ok()).filter(|threads| *threads > 0);
        Ok(Self { listen, folder, file_threads: threads.unwrap_or(FILE_THREADS) })
    }

    /// Builds a runtime of one worker, the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn runtime(&self) -> io::Result<Runtime> {
        Builder::new_current_thread().enable_all().max_blocking_threads(self.file_threads).build()
    }

    /// Binds and listens. Call it within the runtime.
    ///
    /// # Errors
    /// The kernel's.
    pub fn listener(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.listen)?;
        socket.listen(BACKLOG)
    }
}
