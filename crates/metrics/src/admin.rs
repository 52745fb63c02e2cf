//! The admin listener: a small server of its own beside the one that it describes.

use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shearwater::engine::KnownField;
use shearwater::engine::visible::Json;
use shearwater::{
    App, Control, DriverChoice, Error, Head, Limits, ListenAddress, Middleware, Request, Response, Server,
    StartReport, Status, Timeouts, Verbosity, get,
};

use crate::exposition::{TextFormat, write_text};
use crate::limits::{
    ADMIN_BODY_BYTES_MAX, ADMIN_BUFFERED_BYTES_MAX, ADMIN_CONNECTIONS_MAX, ADMIN_DRAIN_MS,
    ADMIN_HEAD_BYTES_MAX, ADMIN_IDLE_MS, ADMIN_RECEIVE_MS, ADMIN_REQUESTS_MAX, ADMIN_WRITE_MS,
};
use crate::metrics::{Metrics, Readiness};
use crate::page::{STATUS_PAGE, STATUS_POLICY};

/// Options of an admin listener.
#[derive(Debug, Clone)]
pub struct AdminOptions {
    /// Its address.
    pub listen: ListenAddress,
    /// Allows an address that other machines may reach. Everything that it serves is then for anyone who can connect.
    pub remote: bool,
    /// The I/O driver.
    pub driver: DriverChoice,
}

impl AdminOptions {
    /// Returns options for an address of this machine.
    #[must_use]
    pub fn at(listen: impl Into<ListenAddress>) -> Self {
        Self { listen: listen.into(), remote: false, driver: DriverChoice::Auto }
    }

    /// Returns true if other machines may reach the address.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match &self.listen {
            ListenAddress::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            _ => false,
        }
    }
}

/// An error of starting an admin listener. Displays as one sentence with a remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum AdminError {
    /// Other machines may reach the address, and [`AdminOptions::remote`] is not set.
    Remote(SocketAddr),
    /// The server can't start, for example because its address is taken.
    Start(Error),
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => {
                write!(f, "the admin listener's address {address} isn't of this machine alone")
            }
            Self::Start(error) => write!(f, "admin listener: {error}"),
        }
    }
}

impl std::error::Error for AdminError {}

/// A running admin listener. Dropping it doesn't end it: see [`end`](Self::end).
#[derive(Debug)]
pub struct Admin {
    control: Arc<Control>,
    start_report: StartReport,
    /// Prints its messages.
    thread: JoinHandle<()>,
}

impl Admin {
    /// Binds the address, or takes it over from the process that this one [succeeds](shearwater::Successor), and serves until
    /// [`end`](Self::end), on a worker of its own.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn start(options: AdminOptions, metrics: &Metrics) -> Result<Self, AdminError> {
        let is_remote = options.is_remote();
        if let (true, false, ListenAddress::Tcp(address)) = (is_remote, options.remote, &options.listen) {
            return Err(AdminError::Remote(*address));
        }
        let limits = Limits {
            connections_max: ADMIN_CONNECTIONS_MAX,
            head_bytes_max: ADMIN_HEAD_BYTES_MAX,
            body_bytes_max: ADMIN_BODY_BYTES_MAX,
            buffered_bytes_max: ADMIN_BUFFERED_BYTES_MAX,
            requests_per_connection_max: ADMIN_REQUESTS_MAX,
            ..Limits::default()
        };
        // A health check that waits for a connection waits as long as the slowest client may hold one.
        let timeouts = Timeouts {
            first_head_ms: ADMIN_RECEIVE_MS,
            head_ms: ADMIN_RECEIVE_MS,
            body_ms: ADMIN_RECEIVE_MS,
            body_grace_ms: ADMIN_RECEIVE_MS,
            idle_ms: ADMIN_IDLE_MS,
            write_ms: ADMIN_WRITE_MS,
            linger_ms: ADMIN_RECEIVE_MS,
            half_closed_ms: ADMIN_RECEIVE_MS,
            drain_idle_ms: ADMIN_DRAIN_MS / 10,
        };
        let server = Server::at(options.listen)
            .driver(options.driver)
            .workers(1)
            .limits(limits)
            .timeouts(timeouts)
            .drain_ms(ADMIN_DRAIN_MS)
            .watchdog_ms(0)
            .take_over_listeners()
            .verbosity(Verbosity::Error)
            .secondary("admin");
        let running = server.start(app(metrics, is_remote)).map_err(AdminError::Start)?;
        let (control, start_report) = (running.control(), running.start_report().clone());
        let (end, is_over) = sync_channel::<()>(0);
        let wait = move || {
            // A failed worker has been reported, and the server that is described serves on.
            drop(running.wait_for_control());
            drop(end);
        };
        let failed = |error| {
            control.stop();
            AdminError::Start(shearwater::StartError::System(error).into())
        };
        // Whatever happens from now on is in the history.
        metrics.record_second();
        let of_history = metrics.clone();
        let record = move || record_seconds(&of_history, &is_over);
        thread::Builder::new().name("history".to_owned()).spawn(record).map_err(failed)?;
        let thread = thread::Builder::new().name("admin".to_owned()).spawn(wait).map_err(failed)?;
        Ok(Self { control, start_report, thread })
    }

    /// Returns its TCP address, with the port that was assigned.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.start_report.addresses.first().copied()
    }

    /// Returns the path of its Unix-domain socket.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        self.start_report.unix_sockets.first()
    }

    /// Returns its control, for a [`Successor`](shearwater::Successor) to get its listener, for example.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Ends it: responses that have begun may take [`ADMIN_DRAIN_MS`].
    pub fn end(self) {
        self.control.drain(ADMIN_DRAIN_MS);
        // A panic of the thread was printed.
        drop(self.thread.join());
    }
}

/// Records each second until the other end of the channel is dropped.
fn record_seconds(metrics: &Metrics, is_over: &Receiver<()>) {
    loop {
        let elapsed = metrics.0.started.elapsed();
        let wait = Duration::from_secs(elapsed.as_secs() + 1) - elapsed;
        if is_over.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        metrics.record_second();
    }
}

/// Returns the routes. A listener that other machines can't reach responds only to names of this machine.
fn app(metrics: &Metrics, is_remote: bool) -> App<Metrics> {
    let metrics = metrics.clone();
    App::with_state(move |_worker| metrics.clone())
        .with(Policy { is_remote })
        .route(
            "/",
            get(|_: &Request<Metrics>| {
                (Head::new(Status::FOUND).field("Location", "/status"), "See /status\n")
            }),
        )
        .route("/metrics", get(exposition))
        .route("/health", get("ok\n"))
        .route("/ready", get(readiness))
        .route("/status.json", get(document))
        .route("/status", get(page))
}

/// Rejects names of other machines, and adds fields to every response.
struct Policy {
    is_remote: bool,
}

impl Middleware<Metrics> for Policy {
    fn head(&self, request: &Request<Metrics>, response: &mut Response) -> ControlFlow<()> {
        if self.is_remote || request.peer().is_none() || is_of_this_machine(request.head().host_bytes()) {
            return ControlFlow::Continue(());
        }
        response.status(403).text("Forbidden: use an IP address or localhost as the host\n");
        ControlFlow::Break(())
    }

    fn response(&self, _: &Request<Metrics>, response: &mut Response) {
        response.field("Cache-Control", "no-store").field("X-Content-Type-Options", "nosniff");
        response.field("Cross-Origin-Resource-Policy", "same-origin");
    }
}

fn exposition(request: &Request<Metrics>, response: &mut Response) {
    let format = TextFormat::accepted(request.head().field(KnownField::Accept));
    let mut text = String::new();
    write_text(&request.state().snapshot(), format, &mut text);
    response.field("Vary", "Accept").content_type(format.media_type()).body(text);
}

fn readiness(request: &Request<Metrics>) -> (Status, String) {
    let readiness = request.state().readiness();
    let is_ready = readiness == Readiness::Serving;
    let status = if is_ready { Status::OK } else { Status::SERVICE_UNAVAILABLE };
    (status, format!("{}\n", readiness.name()))
}

fn document(request: &Request<Metrics>, response: &mut Response) {
    let status = request.state().status();
    response.content_type("application/json").body_with(|body| {
        // Plain data with text keys always has a form in JSON.
        let text = serde_json::to_string(&status).unwrap_or_default();
        // Writing to a list of bytes can't fail.
        let _ = write!(body, "{}", Json(&text));
    });
}

fn page(_: &Request<Metrics>, response: &mut Response) {
    response.field("Content-Security-Policy", STATUS_POLICY).html(STATUS_PAGE);
}

/// Returns true for hosts that another site's name can't be: a page that rebinds its name to this machine has its own.
fn is_of_this_machine(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let ip = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    // Without a host: HTTP/1.0, and no browser.
    host.is_empty() || name.eq_ignore_ascii_case("localhost") || ip.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::{AdminOptions, is_of_this_machine};

    #[test]
    fn names_of_other_sites_are_not_of_this_machine() {
        for host in [
            "",
            "localhost",
            "LOCALHOST:9180",
            "127.0.0.1",
            "127.0.0.1:9180",
            "[::1]:9180",
            "[::1]",
            "10.0.0.1",
        ] {
            assert!(is_of_this_machine(host.as_bytes()), "{host}");
        }
        for host in [
            "example.org",
            "example.org:9180",
            "localhost.example.org",
            "127.0.0.1.example.org",
            ":80",
            "a:",
            "[localhost",
        ] {
            assert!(!is_of_this_machine(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn addresses_beyond_loopback_are_remote() {
        for (address, is_remote) in [
            ("127.0.0.1:1", false),
            ("127.9.9.9:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("10.0.0.1:1", true),
        ] {
            let address: std::net::SocketAddr = address.parse().expect("an address");
            assert_eq!(AdminOptions::at(address).is_remote(), is_remote, "{address}");
        }
    }
}
