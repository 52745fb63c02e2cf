//! A worker's thread: creates and owns driver, service and worker.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use shearwater_io::poll::{Poll, PollOptions};
use shearwater_io::uring::{self, UringOptions};
use shearwater_io::{Driver, Entrances, os};

use crate::server::control::Notice;
use crate::server::panics;
use crate::server::start::StartError;
use crate::service::Service;
use crate::worker::{Setup, Worker};

/// Reports the start of a worker.
type Started = SyncSender<Result<(), StartError>>;

/// Starts a worker with the driver of this name and waits until it serves or has failed.
pub(crate) fn spawn<S: Service + 'static>(
    setup: Setup,
    driver: &'static str,
    entrances: Entrances,
    core: Option<usize>,
    make_service: Arc<impl Fn(usize) -> S + Send + Sync + 'static>,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let (started, has_started) = sync_channel(1);
    let thread = thread::Builder::new().name(format!("worker-{}", setup.worker)).spawn(move || {
        let connections_max = setup.limits.connections_max;
        let recv_buffer_bytes = setup.limits.receive_bytes;
        // A driver stays on the thread that made it.
        if driver == uring::NAME {
            let options = UringOptions { connections_max, recv_buffer_bytes, ..UringOptions::default() };
            begin(core, || uring::start(entrances, options), &*make_service, setup, &started)
        } else {
            let options = PollOptions { connections_max, recv_buffer_bytes };
            begin(core, || Poll::new(entrances, options), &*make_service, setup, &started)
        }
    });
    let thread = thread.map_err(StartError::System)?;
    match has_started.recv() {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(thread),
    }
}

/// Prepares the thread, reports the result, and serves.
fn begin<D: Driver, S: Service>(
    core: Option<usize>,
    make_driver: impl FnOnce() -> io::Result<D>,
    make_service: &impl Fn(usize) -> S,
    setup: Setup,
    started: &Started,
) -> io::Result<()> {
    let prepared = prepare(core).and_then(|()| make_driver().map_err(StartError::System));
    // The receiver is gone only if the starting thread is.
    match prepared {
        Ok(driver) => {
            drop(started.send(Ok(())));
            serve(driver, make_service, setup)
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
    driver: D,
    make_service: &impl Fn(usize) -> S,
    setup: Setup,
) -> io::Result<()> {
    let (number, control) = (setup.worker, Arc::clone(&setup.control));
    let caught = panics::catch(|| Worker::new(driver, make_service(number), setup).run());
    let result = caught.unwrap_or_else(|panic| Err(io::Error::other(panic.message)));
    let error = result.as_ref().err().map(ToString::to_string);
    // The channel is closed only if the operator's side is gone.
    control.notify(Notice::WorkerEnded { worker: number, error });
    result
}
