//! What all peers share: their command line, their listener, their one worker, and the allocator.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use mimalloc::MiMalloc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Room for a burst of ten thousand connections, as all servers of the lab have it.
pub const BACKLOG: u32 = 16_384;

/// Threads that may wait for files beside the worker, as tokio has it without being told.
const FILE_THREADS: usize = 512;

/// The answer of the servers that have no files.
pub const PLAINTEXT: &str = "Hello, World!";

/// The command line: the address, and for servers of files the folder and how many threads may wait for files.
#[derive(Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What to serve.
    pub folder: PathBuf,
    /// Threads that may wait for files, at most.
    pub file_threads: usize,
}

impl Settings {
    /// Reads `ADDRESS [FOLDER [FILE_THREADS]]`.
    ///
    /// # Errors
    /// There is no address, or it is none.
    pub fn from_arguments() -> io::Result<Self> {
        let mut arguments = std::env::args().skip(1);
        let listen = arguments.next().and_then(|text| text.parse().ok());
        let listen =
            listen.ok_or_else(|| io::Error::other("usage: PEER ADDRESS:PORT [FOLDER [FILE_THREADS]]"))?;
        let folder = arguments.next().map_or_else(PathBuf::new, PathBuf::from);
        let threads = arguments.next().and_then(|text| text.parse().ok()).filter(|threads| *threads > 0);
        Ok(Self { listen, folder, file_threads: threads.unwrap_or(FILE_THREADS) })
    }
}

/// One worker: the thread that calls.
///
/// # Errors
/// What the kernel refuses.
pub fn runtime(settings: &Settings) -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(settings.file_threads).build()
}

/// Binds and listens. Call it within the runtime.
///
/// # Errors
/// What the kernel refuses.
pub fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
