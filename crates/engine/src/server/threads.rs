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
use crate::server::host::{Host, HostedWorker, WorkerPosition};
use crate::server::notice::Notice;
use crate::server::panics::{self, Panic};
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
    type Of<D: Driver + 'static>: Driver + 'static;

    fn decorate<D: Driver + 'static>(&self, driver: D, worker: usize) -> Self::Of<D>;
}

/// Leaves drivers as they are.
pub(crate) struct Plain;

impl Decorate for Plain {
    type Of<D: Driver + 'static> = D;

    fn decorate<D: Driver + 'static>(&self, driver: D, _: usize) -> D {
        driver
    }
}

/// Has drivers secure connections, with providers that this function makes for workers by their number.
pub(crate) struct Securing<F>(pub(crate) F);

impl<P: Provider + 'static, F: Fn(usize) -> P + Send + Sync + 'static> Decorate for Securing<F> {
    type Of<D: Driver + 'static> = Secure<D, P>;

    fn decorate<D: Driver + 'static>(&self, driver: D, worker: usize) -> Secure<D, P> {
        Secure::new(driver, (self.0)(worker))
    }
}

/// A worker's driver, core and event loop.
pub(crate) struct WorkerPlace {
    /// Name of its driver.
    pub(crate) driver: &'static str,
    /// Core that its thread is pinned to.
    pub(crate) core: Option<usize>,
    /// Event loop that it is run within.
    pub(crate) host: Option<(Arc<dyn Host>, WorkerPosition)>,
}

/// Starts a worker.
pub(crate) fn spawn_worker<S: Service>(
    setup: Setup,
    place: WorkerPlace,
    entrances: Entrances,
    decorate: Arc<impl Decorate>,
    make_service: Arc<impl Fn(usize) -> S + Send + Sync + 'static>,
) -> Result<StartingWorker, StartError> {
    let (started, has_started) = sync_channel(1);
    let thread = thread::Builder::new().name(format!("worker-{}", setup.worker)).spawn(move || {
        let connections_max = setup.limits.connections_max;
        let recv_buffer_bytes = setup.limits.receive_bytes;
        let worker = setup.worker;
        // A driver stays on the thread that made it.
        if place.driver == uring::NAME {
            let descriptors_max = setup.descriptors_max;
            let options = UringOptions {
                connections_max,
                descriptors_max,
                recv_buffer_bytes,
                ..UringOptions::default()
            };
            let driver = || Ok(decorate.decorate(uring::start(entrances, options)?, worker));
            begin(place, driver, make_service, setup, &started)
        } else {
            let options = PollOptions { connections_max, recv_buffer_bytes };
            let driver = || Ok(decorate.decorate(Poll::new(entrances, options)?, worker));
            begin(place, driver, make_service, setup, &started)
        }
    });
    Ok(StartingWorker { thread: thread.map_err(StartError::System)?, has_started })
}

/// Prepares the thread, makes the service, reports the result, and serves.
fn begin<D: Driver + 'static, S: Service>(
    place: WorkerPlace,
    make_driver: impl FnOnce() -> io::Result<D>,
    make_service: Arc<impl Fn(usize) -> S>,
    setup: Setup,
    started: &Started,
) -> io::Result<()> {
    let (number, control) = (setup.worker, Arc::clone(&setup.control));
    let WorkerPlace { core, host, .. } = place;
    // It drops `make_service`, which owns what a reload replaces.
    let make = move || {
        let driver = prepare(core).and_then(|()| make_driver().map_err(StartError::System))?;
        let caught = panics::catch(move || Worker::new(driver, make_service(number), setup));
        caught.map_err(|panic| StartError::Service { worker: number, message: panic.message })
    };
    // The receiver of the result is gone only if the starting thread is.
    let result = match host {
        None => match make() {
            Ok(mut worker) => {
                drop(started.send(Ok(())));
                panics::catch(move || worker.run())
            }
            Err(error) => {
                drop(started.send(Err(error)));
                return Ok(());
            }
        },
        Some((host, position)) => match run_hosted(&*host, position, make, started) {
            Some(result) => result,
            None => return Ok(()),
        },
    };
    let result = result.unwrap_or_else(|panic| Err(io::Error::other(panic.message)));
    let error = result.as_ref().err().map(ToString::to_string);
    // The channel is closed only if the operator's side is gone.
    control.notify(Notice::WorkerEnded { worker: number, error });
    result
}

/// Runs a worker within another event loop. Returns `None` if it couldn't start, which it reports.
fn run_hosted<W: HostedWorker + 'static>(
    host: &dyn Host,
    position: WorkerPosition,
    make: impl FnOnce() -> Result<W, StartError>,
    started: &Started,
) -> Option<Result<io::Result<()>, Box<Panic>>> {
    let (mut make, mut is_serving) = (Some(make), false);
    let mut start = || {
        // A driver that can't be watched is an error of the start.
        let made = make.take()?().and_then(|mut worker| match worker.descriptor() {
            Ok(_) => Ok(worker),
            Err(error) => Err(StartError::System(error)),
        });
        is_serving = made.is_ok();
        let (worker, result) = match made {
            Ok(worker) => (Some(Box::new(worker) as Box<dyn HostedWorker>), Ok(())),
            Err(error) => (None, Err(error)),
        };
        drop(started.send(result));
        worker
    };
    let caught = panics::catch(|| host.run(position, &mut start));
    if make.is_some() {
        let error = match caught {
            Ok(Ok(())) => {
                StartError::System(io::Error::other("the event loop of a worker hasn't started it"))
            }
            Ok(Err(error)) => StartError::System(error),
            Err(panic) => StartError::Service { worker: position.number, message: panic.message },
        };
        drop(started.send(Err(error)));
        return None;
    }
    is_serving.then_some(caught)
}

/// Prepares a worker's thread before its driver is created.
fn prepare(core: Option<usize>) -> Result<(), StartError> {
    if let Some(core) = core {
        os::pin_to_core(core).map_err(StartError::Pin)?;
    }
    panics::enter_worker();
    Ok(())
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
