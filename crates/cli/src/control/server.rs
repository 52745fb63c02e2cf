//! The server's side of the control socket.
//!
//! The thread of signals accepts connections. Each has a short-lived thread of its own, so that a command may take its time
//! while signals are handled.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use shearwater::engine::control_socket::{ControlSocket, ControlStream};
use shearwater::engine::{SourceWatch, watch_source};
use shearwater::{Control, Operator};

use super::{Outcome, REQUEST_BYTES_MAX, Reply, Request, line, path_of};

/// Connections at once.
const CONNECTIONS_MAX: usize = 8;

/// Connections that are accepted before signals are handled.
const ACCEPTS_MAX: usize = 16;

/// Time for a client to send its request, and to take the reply.
const CLIENT_WAIT: Duration = Duration::from_secs(5);

/// Pause after a failure to accept.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Longest wait at the end of the server: for its successor's socket, then for open connections.
const END_WAIT: Duration = Duration::from_secs(1);

/// Interval of looking for them.
const END_POLL: Duration = Duration::from_millis(5);

/// A command's function. It may block.
type Function = dyn Fn(&Request) -> Reply + Send + Sync;

/// The commands of a server, by their names.
#[derive(Default)]
pub(crate) struct Commands(Vec<(&'static str, Box<Function>)>);

impl Commands {
    /// Returns `reload` and `upgrade`.
    pub(crate) fn of(operator: Operator, control: Arc<Control>) -> Self {
        let upgrader = operator.clone();
        Self::default().with("reload", move |request| Reply::of(operator.reload(request.timeout), None)).with(
            "upgrade",
            move |request| {
                let result = upgrader.upgrade(request.timeout);
                Reply::of(result, control.successor())
            },
        )
    }

    /// Adds a command.
    #[must_use]
    pub(crate) fn with(
        mut self,
        name: &'static str,
        function: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.0.push((name, Box::new(function)));
        self
    }

    fn call(&self, request: &Request) -> Reply {
        match self.0.iter().find(|(name, _)| *name == request.command) {
            Some((_, function)) => function(request),
            None => refused(format!("the server doesn't know the command `{}`", request.command)),
        }
    }
}

fn refused(text: impl Into<String>) -> Reply {
    Reply::new(Outcome::Refused, text)
}

/// Serves commands until [`end`](Self::end).
pub(crate) struct ControlServer {
    shared: Arc<Shared>,
    watch: SourceWatch,
}

struct Shared {
    socket: ControlSocket,
    commands: Commands,
    /// Number of open connections.
    open: Mutex<usize>,
    closed: Condvar,
}

impl ControlServer {
    /// Listens beside a PID file. A failure is logged: connections are accepted by now.
    pub(crate) fn beside(pid_file: &Path, predecessor: Option<u32>, commands: Commands) -> Option<Self> {
        let path = path_of(pid_file);
        let started = Self::start(&path, predecessor, commands);
        let warn = |error: &io::Error| {
            let path = path.display();
            tracing::warn!(
                target: "shearwater",
                kind = "control_failed",
                "no control socket at {path}: {error}; `shearwater reload` and `upgrade` can only send signals"
            );
        };
        started.inspect_err(warn).ok()
    }

    /// Listens at `path`, also in the place of the process `predecessor`, which this one succeeds.
    ///
    /// # Errors
    /// As [`ControlSocket::bind`].
    fn start(path: &Path, predecessor: Option<u32>, commands: Commands) -> io::Result<Self> {
        let socket = ControlSocket::bind(path, predecessor)?;
        let shared = Arc::new(Shared { socket, commands, open: Mutex::new(0), closed: Condvar::new() });
        let watched = Arc::clone(&shared);
        let watch = watch_source(Arc::clone(&shared), move || watched.accept());
        watch.inspect_err(|_| shared.socket.remove_file()).map(|watch| Self { shared, watch })
    }

    /// Stops listening, and waits for the replies to open connections. Removes the socket's file, unless another process
    /// succeeds this one: then its socket takes the place first, so that no client is refused.
    pub(crate) fn end(self, has_successor: bool) {
        let Self { shared, watch } = self;
        let start = Instant::now();
        while has_successor && shared.socket.has_file() && start.elapsed() < END_WAIT {
            thread::sleep(END_POLL);
        }
        if !has_successor {
            shared.socket.remove_file();
        }
        drop(watch);
        // What has connected before.
        let _ = shared.accept();
        // A client of a command that lasts longer sees the end of its connection.
        drop(shared.closed.wait_timeout_while(shared.open(), END_WAIT, |open| *open > 0));
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One of the connections at once.
struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.open() -= 1;
        self.0.closed.notify_all();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, usize> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts what is queued. Returns the time for which to leave the socket alone.
    fn accept(self: &Arc<Self>) -> Option<Duration> {
        for _ in 0..ACCEPTS_MAX {
            match self.socket.accept() {
                Ok(Some(connection)) => self.begin(connection),
                Ok(None) => return None,
                Err(_) => return Some(ACCEPT_PAUSE),
            }
        }
        None
    }

    /// Serves a connection on a thread, or rejects it.
    fn begin(self: &Arc<Self>, connection: ControlStream) {
        let Some(slot) = self.slot() else {
            let busy = refused(format!("the server handles {CONNECTIONS_MAX} commands already: try again"));
            // A new connection has room for it, and a client that is gone needs none.
            drop(line::write(&connection.stream, &busy.to_line(), Instant::now() + CLIENT_WAIT));
            return;
        };
        // Without a thread the connection is closed, which the client reports.
        drop(thread::Builder::new().name("control".to_owned()).spawn(move || slot.0.serve(&connection)));
    }

    fn slot(self: &Arc<Self>) -> Option<Slot> {
        let mut open = self.open();
        (*open < CONNECTIONS_MAX).then(|| {
            *open += 1;
            Slot(Arc::clone(self))
        })
    }

    fn serve(&self, connection: &ControlStream) {
        if let Some(reply) = self.reply(connection) {
            // The client may be gone; the log has the outcome of what it has requested.
            drop(line::write(&connection.stream, &reply.to_line(), Instant::now() + CLIENT_WAIT));
        }
    }

    /// Reads the request and carries it out. Returns `None` if the client has sent nothing.
    fn reply(&self, connection: &ControlStream) -> Option<Reply> {
        let peer = connection.peer;
        if !peer.may_control() {
            return Some(refused(format!("{peer} must not control this server: only its own user and root")));
        }
        match line::read(&connection.stream, REQUEST_BYTES_MAX, Instant::now() + CLIENT_WAIT) {
            Ok(line) => Some(match Request::parse(&line) {
                Some(request) => self.commands.call(&request),
                None => refused("the server can't read this request"),
            }),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Some(refused(format!("the request is longer than {REQUEST_BYTES_MAX} bytes")))
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                Some(refused(format!("no request within {} s", CLIENT_WAIT.as_secs())))
            }
            Err(_) => None,
        }
    }
}
