//! Starting and ending the server: the only file to change for another server.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use shearwater::{App, Fast, Line, get, line};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::app::{self, State};
use crate::routes::WAIT_MS_MAX;
use crate::settings::Mode;

/// Time limit for requests in flight once the server is draining.
const DRAIN: Duration = Duration::from_secs(5);

/// Announces the end of the server to tasks, and waits for them.
#[derive(Clone)]
pub(crate) struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Stop {
    /// Creates a watch for a task that must act when the server ends. The server waits until it is dropped.
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.0.subscribe())
    }

    fn request(&self) {
        self.0.send_replace(true);
    }

    /// Waits until all watches are dropped.
    async fn released(&self) {
        self.0.closed().await;
    }
}

/// A watch for the end of the server.
pub(crate) struct Watch(watch::Receiver<bool>);

impl Watch {
    /// Waits until the server ends.
    pub(crate) async fn requested(&mut self) {
        // A dropped sender means the end too.
        drop(self.0.wait_for(|stop| *stop).await);
    }
}

/// Listens on `address` and serves until `SIGINT` or `SIGTERM`.
///
/// Responds to requests in flight then, within [`DRAIN`]; a second signal ends it immediately. `ready` gets the bound
/// address once requests are accepted and signals handled. Errors are one sentence.
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
        .fast(in_front(mode))
        .body_bytes_max(u64::MAX)
        // Events and chats end separately, on the same signal.
        .drain_ms(DRAIN.as_millis() as u64)
        .with_graceful_shutdown(async move { stopped.requested().await })
        .start()
        .map_err(|error| error.to_string())?;
    ready(server.address());

    // The server keeps to its drain time by itself.
    let mut ended = pin!(async { server.ended().await.map_err(|error| failed(&error)) });
    tokio::select! {
        // Without a signal it ends only if it has failed.
        end = &mut ended => return end,
        () = signals.next() => stop.request(),
    }
    let over = Instant::now() + DRAIN;
    let drained = async {
        ended.await?;
        // Upgraded connections no longer belong to the server.
        let stayed = timeout_at(over, stop.released()).await.err();
        Ok::<_, String>(stayed.map(|_| "drain time is over: remaining connections"))
    };
    let cut_off = tokio::select! {
        cut_off = drained => cut_off?,
        () = signals.next() => Some("second signal: requests in flight"),
    };
    if let Some(cut_off) = cut_off {
        println!("demo: {cut_off} are cut off");
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

const JSON: &str = r#"{"message":"Hello, World!"}"#;
const PLAINTEXT: &str = "Hello, World!";

/// Adds `/slow`, and in performance mode prebuilt responses to `GET` of two paths. All other requests fall through to
/// the application.
pub(crate) fn in_front(mode: Mode) -> App {
    let mut app = App::new().route("/slow", get(line(slow)));
    if mode == Mode::Performance {
        app = app.route("/json", get(Fast::json(JSON))).route("/plaintext", get(PLAINTEXT));
    }
    app
}

/// Handles `/slow?ms=` as a coroutine, which waits while its worker serves other requests.
fn slow(line: &mut Line<'_>) {
    let wanted = line.query_raw().and_then(|query| query.strip_prefix("ms="));
    match wanted.and_then(|ms| ms.parse().ok()).filter(|ms| *ms <= WAIT_MS_MAX) {
        Some(ms) => {
            line.sleep(Duration::from_millis(ms));
            line.response().text(&format!("slept {ms} ms\n"));
        }
        None => {
            line.response().status(400).text(&format!("ms should be a number, {WAIT_MS_MAX} at most\n"));
        }
    }
}
