//! Who serves the application, and how it ends: the one file to change for another server.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::app::{self, State};
use crate::fast;
use crate::settings::Mode;

/// How long requests that were received may take to end once the server was told to.
const DRAIN: Duration = Duration::from_secs(5);

/// Tells those who wait that the server ends, and waits for them.
#[derive(Clone)]
pub(crate) struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Stop {
    /// For somebody who has something to say when the server ends: it doesn't before this is dropped.
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.0.subscribe())
    }

    fn request(&self) {
        self.0.send_replace(true);
    }

    /// Returns when nobody watches any more.
    async fn released(&self) {
        self.0.closed().await;
    }
}

/// Sees the end coming.
pub(crate) struct Watch(watch::Receiver<bool>);

impl Watch {
    /// Returns when the server ends.
    pub(crate) async fn requested(&mut self) {
        // Without a sender there is nothing to wait for either.
        drop(self.0.wait_for(|stop| *stop).await);
    }
}

/// Listens at `address` and serves until `SIGINT` or `SIGTERM`, then answers what was received, within [`DRAIN`]; a second signal ends
/// it at once. `ready` is told where it listens when requests are taken and signals heard. Errors are one sentence.
pub(crate) fn run(
    address: SocketAddr,
    state: State,
    mode: Mode,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), String> {
    let listener = TcpListener::bind(address);
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let failed = |error| format!("cannot serve: {error}");
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let result = runtime.block_on(serve(listener, state, mode, ready));
    runtime.shutdown_background();
    result.map_err(failed)
}

async fn serve(
    listener: TcpListener,
    state: State,
    mode: Mode,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let stop = state.stop().clone();
    let mut signals = Signals::new()?;
    let app = app::router(state);
    let service = match mode {
        Mode::Standard => app,
        Mode::Performance => fast::in_front_of(app),
    };

    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    ready(listener.local_addr()?);
    let mut drain = stop.watch();
    let served =
        axum::serve(listener, service).with_graceful_shutdown(async move { drain.requested().await });
    // Connections that were upgraded are nobody's but their own.
    let served = async {
        served.await?;
        stop.released().await;
        Ok(())
    };

    let ended = async {
        signals.next().await;
        stop.request();
        tokio::select! {
            () = signals.next() => "a second signal",
            () = tokio::time::sleep(DRAIN) => "the time to drain is over",
        }
    };
    tokio::select! {
        result = served => result,
        why = ended => {
            println!("demo: {why}: what is still being answered is cut off");
            Ok(())
        }
    }
}

/// The signals that end the program.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
