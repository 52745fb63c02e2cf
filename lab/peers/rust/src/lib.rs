//! Command line, listener, worker, allocator and routes of the peers on tokio.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use axum::routing::{get, post};
use axum::{Json, Router};
use mimalloc::MiMalloc;
use rusqlite::Connection;
use serde::Serialize;
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

/// A message that `/json` serialises for each response.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Message {
    message: &'static str,
}

/// The one message.
pub const MESSAGE: Message = Message { message: PLAINTEXT };

thread_local! {
    static DATABASE: Connection = database().expect("a database in memory");
}

fn database() -> rusqlite::Result<Connection> {
    let database = Connection::open_in_memory()?;
    database.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", [])?;
    let mut insert = database.prepare("INSERT INTO texts VALUES (?, ?)")?;
    (1..=10_000).try_for_each(|id| insert.execute((id, PLAINTEXT)).map(drop))?;
    drop(insert);
    Ok(database)
}

/// Reads a row of the thread's database.
#[must_use]
pub fn row() -> String {
    let read = |database: &Connection| {
        let mut select = database.prepare_cached("SELECT text FROM texts WHERE id = ?")?;
        select.query_row([5_000], |row| row.get(0))
    };
    DATABASE.with(|database| read(database).unwrap_or_else(|error: rusqlite::Error| error.to_string()))
}

/// Waits for a timer of 1 ms.
pub async fn wait() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Returns the routes, the same under `axum::serve` and on our engine. A `GET` for everything else is a 404.
pub fn router() -> Router {
    let timer = || async {
        wait().await;
        PLAINTEXT
    };
    Router::new()
        .route("/plaintext", get(|| async { PLAINTEXT }))
        .route("/json", get(|| async { Json(MESSAGE) }))
        .route("/body", post(|body: Bytes| async { body }))
        .route("/timer", get(timer))
        .route("/row", get(|| async { row() }))
}

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
