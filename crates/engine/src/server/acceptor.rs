//! The acceptor's thread: accepts for all workers, and ends before they do.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use shearwater_io::acceptor::{Acceptor, Progress, StopKind};
use shearwater_io::{AcceptError, Dispatcher, Listener};

use crate::accept::address_of;
use crate::limits::ACCEPT_RETRY_MS;
use crate::server::control::{Control, Notice, Order};
use crate::server::counters::Counters;
use crate::server::panics;
use crate::server::start::StartError;

/// Starts accepting on `listeners` for the workers of `dispatcher`, which must be running.
///
/// # Errors
/// [`StartError::System`]. The listeners and the workers' inboxes are closed then.
pub(crate) fn spawn(
    listeners: Vec<Listener>,
    dispatcher: Dispatcher,
    control: Arc<Control>,
    listening_at: Arc<[String]>,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let acceptor = Acceptor::new(listeners, dispatcher, ACCEPT_RETRY_MS).map_err(StartError::System)?;
    let counters = Arc::new(Counters::default());
    control.enlist(acceptor.waker(), Arc::clone(&counters));
    let thread = thread::Builder::new().name("acceptor".to_owned());
    let thread = thread.spawn(move || {
        let operator = Arc::clone(&control);
        let accepting =
            Accepting { acceptor, control: operator, counters, listening_at, is_pause_reported: false };
        let caught = panics::catch(move || accepting.run());
        let result = caught.unwrap_or_else(|panic| Err(io::Error::other(panic.message)));
        control.notify(Notice::AcceptorEnded { error: result.as_ref().err().map(ToString::to_string) });
        result
    });
    thread.map_err(StartError::System)
}

/// An acceptor with its counters and reports.
struct Accepting {
    acceptor: Acceptor,
    control: Arc<Control>,
    counters: Arc<Counters>,
    /// Addresses of the listeners, indexed by `ListenerId`.
    listening_at: Arc<[String]>,
    /// A pause of accepting has been reported and not yet its end.
    is_pause_reported: bool,
}

impl Accepting {
    fn run(mut self) -> io::Result<()> {
        loop {
            match self.control.order() {
                Order::Serve => {}
                Order::Drain => self.acceptor.stop(StopKind::Drain),
                Order::Stop => self.acceptor.stop(StopKind::AtOnce),
            }
            match self.acceptor.turn()? {
                Progress::Over => return Ok(()),
                Progress::Paused => {}
                Progress::Open => self.opened(),
                Progress::Full => self.counters.hit_inbox.add(1),
                Progress::Failed(error) => self.failed(error),
                Progress::ListenerFailed { listener, errno } => {
                    let address = address_of(&self.listening_at, listener);
                    self.notify(Notice::ListenerFailed { worker: None, address, errno });
                }
            }
        }
    }

    fn opened(&mut self) {
        if std::mem::take(&mut self.is_pause_reported) {
            self.notify(Notice::AcceptorResumed);
        }
    }

    fn failed(&mut self, error: AcceptError) {
        self.counters.hit_connections.add(1);
        if !std::mem::replace(&mut self.is_pause_reported, true) {
            self.notify(Notice::AcceptorPaused { error });
        }
    }

    fn notify(&self, notice: Notice) {
        if !self.control.notify(notice) {
            self.counters.hit_notices.add(1);
        }
    }
}
