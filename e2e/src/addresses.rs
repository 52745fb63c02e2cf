//! Group `reload`: a hundred addresses are added and removed by `SIGHUP` under load, beside one that stays.
//!
//! Clients at a fixed rate use the address that stays. Others connect to those that come and go as fast as they can, half
//! of them with a connection per request: each is served or not accepted, and no connection is reset with a request in
//! flight. Reloads to an address that another program has are refused in between.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use testkit::{Client, Program, free_address};

use crate::context::CaseContext;
use crate::expected::ExactResponse;
use crate::normal::NormalClients;
use crate::reload::{REFUSED, RELOADED, Reloaded};
use crate::report::CaseReport;
use crate::usage::Usage;

/// Addresses that a reload adds, and removes of the reload before.
const AT_ONCE: u64 = 5;
/// Reloads before the first measurement of memory.
const WARM_UP: u64 = 3;
/// One reload in so many is preceded by one that must be refused.
const REFUSED_EVERY: u64 = 5;
/// Clients of the address that stays, each with a request per [`INTERVAL`]: 500 requests a second.
const CLIENTS: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(20);
/// Clients of the addresses that come and go.
const CHURNING: usize = 4;
/// Requests of one of their connections.
const KEPT_REQUESTS_MAX: usize = 20;
/// Time for a connection: while a listener is being removed, requests for connections are dropped.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
/// Time for what a reload leaves to be freed.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Growth of resident memory over all reloads, KiB.
const GROWTH_MAX_KIB: f64 = 4.0 * 1024.0;
const TARGET: &str = "/page.txt";

/// Returns a configuration with these addresses.
fn config(addresses: &[String]) -> String {
    let listen = |address: &String| format!("[[listen]]\naddress = \"{address}\"\n\n");
    addresses.iter().map(listen).collect::<String>() + "[[site]]\nroot = \"www\"\n"
}

/// Clients of the addresses that come and go.
struct Churn<'a> {
    expected: &'a ExactResponse,
    addresses: Mutex<Vec<SocketAddr>>,
    served: AtomicU64,
    not_accepted: AtomicU64,
    errors: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Churn<'_> {
    fn set(&self, addresses: Vec<SocketAddr>) {
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    /// Connects to one address after the other, until it is over.
    fn run(&self, number: usize) {
        let requests_max = if number.is_multiple_of(2) { 1 } else { KEPT_REQUESTS_MAX };
        let mut round = number;
        while !self.is_over.load(Ordering::Relaxed) {
            round += 1;
            let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let address = addresses.get(round % addresses.len().max(1)).copied();
            drop(addresses);
            let Some(address) = address else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => self.requests(stream, requests_max),
                Err(_) => {
                    self.not_accepted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Sends requests on a connection until the server ends it.
    fn requests(&self, stream: TcpStream, requests_max: usize) {
        let failed = |error: String| self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        let mut client = match Client::over(stream) {
            Ok(client) => client,
            Err(error) => return failed(error.to_string()),
        };
        for _ in 0..requests_max {
            match client.get(TARGET) {
                Ok(response) if response.head.closes() => {
                    self.served.fetch_add(1, Ordering::Relaxed);
                    return client.end().unwrap_or_else(|error| failed(format!("the end: {error}")));
                }
                Ok(response) if self.expected.equals(&response) => {
                    self.served.fetch_add(1, Ordering::Relaxed)
                }
                Ok(response) => return failed(format!("a wrong response: {:?}", response.head.text())),
                Err(error) => return failed(error.to_string()),
            };
        }
    }
}

/// Returns the new addresses of the last reload.
fn added(log: &str) -> Result<Vec<SocketAddr>> {
    let line = log.lines().rfind(|line| line.starts_with(RELOADED)).context("no reload")?;
    let Some((_, added)) = line.split_once("; now listening on ") else { return Ok(Vec::new()) };
    let added = added.split(';').next().unwrap_or_default().split(", ");
    let tcp = added.filter(|address| !address.starts_with("unix:"));
    tcp.map(|address| address.parse().with_context(|| format!("an address in {line:?}"))).collect()
}

/// The server, and addresses that come and go.
struct Changed<'a> {
    reloaded: Reloaded<'a>,
    churn: &'a Churn<'a>,
    stays: SocketAddr,
    socket: &'a Path,
    taken: SocketAddr,
    sums: BTreeMap<&'static str, u64>,
}

impl Changed<'_> {
    /// Has the server listen on other addresses beside the one that stays.
    fn change(&mut self, number: u64) -> Result<()> {
        let mut addresses = vec![self.stays.to_string()];
        // A port is assigned to each; other hosts than in the reload before, so that each is a new address.
        let host = |index: u64| format!("127.0.{}.{}:0", 1 + number % 2, 1 + index);
        addresses.extend((1..AT_ONCE).map(host));
        if number.is_multiple_of(2) {
            addresses.push(format!("unix:{}", self.socket.display()));
        } else {
            addresses.push(host(AT_ONCE));
        }
        if number.is_multiple_of(REFUSED_EVERY) {
            let with_taken = [&addresses[..], &[self.taken.to_string()]].concat();
            self.reloaded.reload(&config(&with_taken), REFUSED)?;
            *self.sums.entry("refused").or_default() += 1;
        }
        self.reloaded.reload(&config(&addresses), RELOADED)?;
        *self.sums.entry("added").or_default() += AT_ONCE;
        self.churn.set(added(&self.reloaded.server.log())?);
        let has_socket = UnixStream::connect(self.socket).is_ok();
        if has_socket != number.is_multiple_of(2) {
            self.reloaded.errors.push(format!("reload {number}: the Unix socket accepts: {has_socket}"));
        }
        Ok(())
    }

    fn change_often(&mut self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        numbers.into_iter().try_for_each(|number| self.change(number))?;
        self.churn.set(Vec::new());
        self.reloaded.reload(&config(&[self.stays.to_string()]), RELOADED)
    }
}

/// Starts the server with one address.
fn start(context: &CaseContext<'_>) -> Result<Program> {
    context.write_file(&format!("www{TARGET}"), b"the same in every configuration\n")?;
    let address = free_address()?;
    let file = context.write_file("site.toml", config(&[address.to_string()]).as_bytes())?;
    let mut command = Command::new(&context.programs.server);
    command.arg("--config").arg(&file);
    command.args(["--workers", &context.workers.to_string(), "--driver", context.driver.name()]);
    Program::start(command, address, &context.folder.join("server.log")).context("shearwater")
}

/// Adds and removes a hundred addresses beside clients of one that stays.
pub(crate) fn under_load(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let server = start(context)?;
    let address = server.address();
    let expected = ExactResponse::new(&Client::connect(address)?.get(TARGET)?).map_err(io::Error::other)?;
    let at_start = Usage::of(&server);
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let churn = Churn {
        expected: &expected,
        addresses: Mutex::default(),
        served: AtomicU64::new(0),
        not_accepted: AtomicU64::new(0),
        errors: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let socket = context.folder.join("socket");
    let mut changed = Changed {
        reloaded: Reloaded { context, server, errors: Vec::new() },
        churn: &churn,
        stays: address,
        socket: &socket,
        taken: taken.local_addr()?,
        sums: BTreeMap::new(),
    };
    let clients = NormalClients {
        count: CLIENTS,
        interval: INTERVAL,
        address,
        target: TARGET,
        expected: &expected,
        also: None,
    };
    let reloads = context.count(100, 1000) / AT_ONCE;
    let (done, seen, before) = thread::scope(|scope| {
        for number in 0..CHURNING {
            let churn = &churn;
            scope.spawn(move || churn.run(number));
        }
        let (done, seen) = clients.beside(|| {
            changed.change_often(1..=WARM_UP)?;
            let before = Usage::settled(&changed.reloaded.server, at_start, TIMEOUT);
            changed.sums.clear();
            changed.change_often(1..=reloads).map(|()| before)
        });
        churn.is_over.store(true, Ordering::Relaxed);
        let before = done.as_ref().ok().copied();
        (done, seen, before)
    });
    done?;
    let before = before.ok_or_else(|| anyhow!("no measurement"))?;
    let after = Usage::settled(&changed.reloaded.server, before, TIMEOUT);

    report.note("reloads", reloads);
    report.equal(
        "addresses added and removed",
        changed.sums.get("added").copied().unwrap_or(0),
        reloads * AT_ONCE,
    );
    report.note("reloads refused for a taken port", changed.sums.get("refused").copied().unwrap_or(0));
    report.note("requests at a fixed rate meanwhile", seen.samples.len());
    report.none("wrong responses to them, and broken connections", &seen.errors);
    report.none("wrong results of reloads", &changed.reloaded.errors);
    let served = churn.served.load(Ordering::Relaxed);
    report.check("requests served at addresses that come and go", served, "1 or more", served > 0);
    report.note("connections not accepted there", churn.not_accepted.load(Ordering::Relaxed));
    let errors = churn.errors.lock().unwrap_or_else(PoisonError::into_inner);
    report.none("wrong responses there, and connections reset with a request in flight", &errors);
    report.left("afterwards", before, after, GROWTH_MAX_KIB);
    report.check("the Unix socket's file", socket.exists(), "false", !socket.exists());
    report.stop(&mut changed.reloaded.server);
    Ok(())
}
