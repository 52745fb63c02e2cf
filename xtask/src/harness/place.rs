//! Which cores the server and its clients run on.
//!
//! Where clients and server share cores, a latency says as much of the scheduler as of the server. A server started by this
//! thread inherits the cores that this thread may use, and so do its threads.

use shearwater_io::os;

/// The server on one core, everything of the trial on another.
#[derive(Debug)]
pub(crate) struct Apart {
    clients: Option<usize>,
}

impl Apart {
    /// Goes to the server's core: start the server now. Where there is one core only, or threads can't be bound to one, everything
    /// stays where it is.
    pub(crate) fn begin() -> Self {
        let cores = os::cores();
        let clients = match cores[..] {
            [server, .., clients] => os::pin_to_core(server).ok().map(|()| clients),
            _ => None,
        };
        Self { clients }
    }

    /// Goes to the clients' core: start the clients now. Tells where everything is.
    pub(crate) fn leave(&self) -> &'static str {
        match self.clients.map(os::pin_to_core) {
            Some(Ok(())) => "server on one core, clients on another",
            Some(Err(_)) => "server and clients on one core",
            None => "wherever the system puts them",
        }
    }
}
