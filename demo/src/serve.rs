//! Who serves the application, and how it ends: the one file to change for another server.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

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
    let failed = |error| format!("cannot serve: {error}");
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let result = runtime.block_on(serve(address, state, mode, ready));
    runtime.shutdown_background();
    result
}

async fn serve(
    address: SocketAddr,
    state: State,
    mode: Mode,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), String> {
    let stop = state.stop().clone();
    let failed = |error: &dyn Display| format!("cannot serve: {error}");
    let mut signals = Signals::new().map_err(|error| failed(&error))?;
    let service = shearwater_tower::bind(address.to_string(), app::router(state));
    let mut stopped = stop.watch();
    let server = service
        .fast(fast::in_front(mode))
        .body_bytes_max(u64::MAX)
        // Events and chats are told apart from this, by the same word.
        .drain_ms(DRAIN.as_millis() as u64)
        .with_graceful_shutdown(async move { stopped.requested().await })
        .start()
        .map_err(|error| error.to_string())?;
    ready(server.address());

    // It keeps to the time to drain by itself.
    let mut ended = pin!(async { server.ended().await.map_err(|error| failed(&error)) });
    tokio::select! {
        // Without a signal it ends only where it has failed.
        end = &mut ended => return end,
        () = signals.next() => stop.request(),
    }
    let over = Instant::now() + DRAIN;
    let drained = async {
        ended.await?;
        // Connections that were upgraded are nobody's but their own.
        let stayed = timeout_at(over, stop.released()).await.err();
        Ok::<_, String>(stayed.map(|_| "the time to drain is over: who has not left"))
    };
    let cut_off = tokio::select! {
        cut_off = drained => cut_off?,
        () = signals.next() => Some("a second signal: what is still being answered"),
    };
    if let Some(cut_off) = cut_off {
        println!("demo: {cut_off} is cut off");
    }
    Ok(())
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
