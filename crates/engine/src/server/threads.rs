//! Threads of a server: workers, each with its driver and service, and the acceptor, which accepts for all of them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use shearwater_io::acceptor::{Acceptor, Progress, StopKind};
use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::secure::{Provider, Secure};
use shearwater_io::uring::{self, UringOptions};
use shearwater_io::{AcceptError, Dispatcher, Driver, Entrances, Listener, os};

use crate::leaving::ListenerChange;
use crate::limits::ACCEPT_RETRY_MS;
use crate::server::control::{Control, Order};
use crate::server::counters::Counters;
use crate::server::notice::Notice;
use crate::server::panics;
use crate::server::start_error::StartError;
use crate::service::Service;
use crate::worker::{Setup, Worker};

/// Reports the start of a worker.
type Started = SyncSender<Result<(), StartError>>;

/// A worker's thread, and its report that its service is made or that it has failed.
pub(crate) struct StartingWorker {
    pub(crate) thread: JoinHandle<io::Result<()>>,
    pub(crate) has_started: Receiver<Result<(), StartError>>,
}

/// A driver's decorator, made on the worker's thread.
pub(crate) trait Decorate: Send + Sync + 'static {
    /// The decorated driver.
    type Of<D: Driver>: Driver;

    fn decorate<D: Driver>(&self, driver: D, worker: usize) -> Self::Of<D>;
}

/// Leaves drivers as they are.
pub(crate) struct Plain;

impl Decorate for Plain {
    type Of<D: Driver> = D;

    fn decorate<D: Driver>(&self, driver: D, _: usize) -> D {
        driver
    }
}

/// Has drivers secure connections, with providers that this function makes for workers by their number.
pub(crate) struct Securing<F>(pub(crate) F);

impl<P: Provider, F: Fn(usize) -> P + Send + Sync + 'static> Decorate for Securing<F> {
    type Of<D: Driver> = Secure<D, P>;

    fn decorate<D: Driver>(&self, driver: D, worker: usize) -> Secure<D, P> {
        Secure::new(driver, (self.0)(worker))
    }
}

/// Starts a worker with the driver of this name.
pub(crate) fn spawn_worker<S: Service>(
    setup: Setup,
    driver: &'static str,
    entrances: Entrances,
    core: Option<usize>,
    decorate: Arc<impl Decorate>,
    make_service: Arc<impl Fn(usize) -> S + Send + Sync + 'static>,
) -> Result<StartingWorker, StartError> {
    let (started, has_started) = sync_channel(1);
    let thread = thread::Builder::new().name(format!("worker-{}", setup.worker)).spawn(move || {
        let connections_max = setup.limits.connections_max;
        let recv_buffer_bytes = setup.limits.receive_bytes;
        let worker = setup.worker;
        // A driver stays on the thread that made it.
        if driver == uring::NAME {
            let descriptors_max = setup.descriptors_max;
            let options = UringOptions {
                connections_max,
                descriptors_max,
                recv_buffer_bytes,
                ..UringOptions::default()
            };
            let driver = || Ok(decorate.decorate(uring::start(entrances, options)?, worker));
            begin(core, driver, make_service, setup, &started)
        } else {
            let options = PollOptions { connections_max, recv_buffer_bytes };
            let driver = || Ok(decorate.decorate(Poll::new(entrances, options)?, worker));
            begin(core, driver, make_service, setup, &started)
        }
    });
    Ok(StartingWorker { thread: thread.map_err(StartError::System)?, has_started })
}

/// Prepares the thread, makes the service, reports the result, and serves.
fn begin<D: Driver, S: Service>(
    core: Option<usize>,
    make_driver: impl FnOnce() -> io::Result<D>,
    make_service: Arc<impl Fn(usize) -> S>,
    setup: Setup,
    started: &Started,
) -> io::Result<()> {
    let (number, control) = (setup.worker, Arc::clone(&setup.control));
    let driver = prepare(core).and_then(|()| make_driver().map_err(StartError::System));
    // It drops `make_service`, which owns what a reload replaces.
    let made = driver.and_then(|driver| {
        let caught = panics::catch(move || Worker::new(driver, make_service(number), setup));
        caught.map_err(|panic| StartError::Service { worker: number, message: panic.message })
    });
    // The receiver is gone only if the starting thread is.
    match made {
        Ok(worker) => {
            drop(started.send(Ok(())));
            serve(worker, number, &control)
        }
        Err(error) => {
            drop(started.send(Err(error)));
            Ok(())
        }
    }
}

/// Prepares a worker's thread before its driver is created.
fn prepare(core: Option<usize>) -> Result<(), StartError> {
    if let Some(core) = core {
        os::pin_to_core(core).map_err(StartError::Pin)?;
    }
    panics::enter_worker();
    Ok(())
}

/// Runs a worker and reports its end.
fn serve<D: Driver, S: Service>(
    mut worker: Worker<D, S>,
    number: usize,
    control: &Control,
) -> io::Result<()> {
    let caught = panics::catch(move || worker.run());
    let result = caught.unwrap_or_else(|panic| Err(io::Error::other(panic.message)));
    let error = result.as_ref().err().map(ToString::to_string);
    // The channel is closed only if the operator's side is gone.
    control.notify(Notice::WorkerEnded { worker: number, error });
    result
}

/// Starts accepting on `listeners` for the workers of `dispatcher`, which must be running.
///
/// # Errors
/// [`StartError::System`]. The listeners and the workers' inboxes are closed then.
pub(crate) fn spawn_acceptor(
    listeners: Vec<Listener>,
    dispatcher: Dispatcher,
    control: Arc<Control>,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let acceptor = Acceptor::new(listeners, dispatcher, ACCEPT_RETRY_MS).map_err(StartError::System)?;
    let counters = Arc::new(Counters::default());
    control.enlist(acceptor.waker(), Arc::clone(&counters));
    let thread = thread::Builder::new().name("acceptor".to_owned());
    let thread = thread.spawn(move || {
        let operator = Arc::clone(&control);
        let accepting =
            Accepting { acceptor, control: operator, counters, changes: 0, is_pause_reported: false };
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
    /// Number of the latest change of listeners that was taken.
    changes: u64,
    /// A pause of accepting has been reported and not yet its end.
    is_pause_reported: bool,
}

impl Accepting {
    fn run(mut self) -> io::Result<()> {
        loop {
            match self.control.order() {
                Order::Serve => self.change_listeners(),
                Order::Drain => self.acceptor.stop(StopKind::Drain),
                Order::Stop => self.acceptor.stop(StopKind::AtOnce),
            }
            match self.acceptor.turn()? {
                Progress::Over => return Ok(()),
                Progress::Paused => {}
                Progress::Open => self.opened(),
                Progress::ListenerRemoved { listener } => self.control.listening.closed(listener, None),
                Progress::Full => self.counters.hit_inbox.add(1),
                Progress::Failed(error) => self.failed(error),
                Progress::ListenerFailed { listener, errno } => {
                    let address = self.control.listening.address_of(listener);
                    self.notify(Notice::ListenerFailed { worker: None, address, errno });
                }
            }
        }
    }

    fn change_listeners(&mut self) {
        if self.control.listening.number() == self.changes {
            return;
        }
        for change in self.control.listening.take(None, &mut self.changes) {
            match change {
                ListenerChange::Add(_, listener) => {
                    listener.into_iter().for_each(|listener| self.acceptor.add(listener));
                }
                ListenerChange::Remove(listener) => {
                    if !self.acceptor.remove(listener) {
                        self.control.listening.closed(listener, None);
                    }
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
