//! A worker's thread: driver, app and worker are made on it, and end with it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use shearwater_io::os;
use shearwater_io::poll::{Poll, PollOptions};

use crate::app::App;
use crate::control::Notice;
use crate::panics;
use crate::start_error::StartError;
use crate::worker::{Setup, Worker};

/// Starts a worker, and waits until it can serve or has failed to.
pub(crate) fn spawn<A: App + 'static>(
    setup: Setup,
    listeners: Vec<TcpListener>,
    core: Option<usize>,
    make_app: Arc<impl Fn(usize) -> A + Send + Sync + 'static>,
) -> Result<JoinHandle<io::Result<()>>, StartError> {
    let options = PollOptions {
        connections_max: setup.limits.connections_max,
        recv_buffer_bytes: setup.limits.receive_bytes,
    };
    let (started, has_started) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(format!("worker-{}", setup.worker)).spawn(move || {
        // A driver stays on the thread that made it.
        let driver = match prepare(listeners, options, core) {
            Ok(driver) => driver,
            Err(error) => {
                // Nobody waits for it only if the starting thread is gone.
                drop(started.send(Err(error)));
                return Ok(());
            }
        };
        drop(started.send(Ok(())));
        serve(driver, &*make_app, setup)
    });
    let thread = thread.map_err(StartError::System)?;
    match has_started.recv() {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(thread),
    }
}

/// What a worker's thread needs before it can serve.
fn prepare(
    listeners: Vec<TcpListener>,
    options: PollOptions,
    core: Option<usize>,
) -> Result<Poll, StartError> {
    if let Some(core) = core {
        os::pin_to_core(core).map_err(StartError::Pin)?;
    }
    panics::print_first_only();
    Poll::new(listeners, options).map_err(StartError::System)
}

/// A worker's life. However it ends, the operator is told.
fn serve<A: App>(driver: Poll, make_app: &impl Fn(usize) -> A, setup: Setup) -> io::Result<()> {
    let (number, control) = (setup.worker, Arc::clone(&setup.control));
    let caught = panics::catch(|| Worker::new(driver, make_app(number), setup).run());
    let result = caught.unwrap_or_else(|message| Err(io::Error::other(message)));
    let error = result.as_ref().err().map(ToString::to_string);
    // Nobody reads only if the operator's side is gone: then there is nobody to tell.
    control.tell(Notice::WorkerEnded { worker: number, error });
    result
}
