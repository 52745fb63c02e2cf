//! Group `drain`: `SIGTERM` costs no request that was sent before it. The tests of `shearwater` and `cli` show its other promises.
//!
//! The accept queue is filled for certain: the server is stopped (`SIGSTOP`) while a burst of clients connects and sends, then gets its
//! `SIGTERM`, then continues (`SIGCONT`).

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use testkit::{Client, Error, Signal, request};

use crate::context::{CaseContext, in_threads};
use crate::report::{CaseReport, exit, success};

const LOAD_THREADS: u64 = 8;
/// Keep-alive connections under load.
const CONNECTIONS: u64 = 200;
/// Connections in the accept queue, with two requests each.
const BURST: usize = 500;
/// Requests to the slow route in flight; each blocks a worker for [`SLOW_MS`].
const SLOW: usize = 20;
const SLOW_MS: u64 = 150;
const DEADLINE: Duration = Duration::from_secs(10);
/// Time for a step to reach the server.
const PAUSE: Duration = Duration::from_millis(100);
/// Lateness allowed for an exit.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Connects and sends the same bytes on every connection.
fn open(address: SocketAddr, count: usize, bytes: &[u8]) -> Result<Vec<Client>> {
    let open = || {
        let mut client = Client::connect(address)?;
        client.send(bytes)?;
        Ok(client)
    };
    (0..count).map(|_| open()).collect::<Result<_, Error>>().context("connecting before the signal")
}

/// Reads a response with this body. Returns true if it announced the end of the connection and the end came.
fn read(client: &mut Client, body: &[u8]) -> Result<bool, Error> {
    let response = client.response()?;
    if response.status() != 200 || response.body != body {
        return Err(Error::Malformed(format!("{:?} {:?}", response.head.text(), response.text())));
    }
    if response.head.closes() {
        client.end()?;
    }
    Ok(response.head.closes())
}

fn hello(client: &mut Client) -> Result<bool, Error> {
    read(client, b"Hello, world\n")
}

/// Reads on every connection, and sees each end in order. Returns how many ends were announced, and the errors.
fn read_all(clients: Vec<Client>, read: impl Fn(&mut Client) -> Result<bool, Error>) -> (usize, Vec<Error>) {
    let (mut announced, mut errors) = (0, Vec::new());
    for mut client in clients {
        match read(&mut client) {
            Ok(true) => announced += 1,
            // The response was under way when the signal came: the connection must end while idle.
            Ok(false) => errors.extend(client.end().err()),
            Err(error) => errors.push(error),
        }
    }
    (announced, errors)
}

/// Sends requests round after round on keep-alive connections, until the signal and every connection's end. Returns the errors.
fn load(address: SocketAddr, connections: u64, signal: &OnceLock<Instant>) -> Vec<String> {
    let mut errors = Vec::new();
    let mut open: Vec<Client> = (0..connections).filter_map(|_| Client::connect(address).ok()).collect();
    if open.len() as u64 != connections {
        errors.push(format!("{} of {connections} connected", open.len()));
    }
    let bytes = request("GET", "/", &[]);
    while !open.is_empty() && signal.get().is_none() {
        let sent = open.into_iter().map(|mut client| (client.send(&bytes), Instant::now(), client));
        let sent: Vec<_> = sent.collect();
        open = Vec::new();
        for (sent, at, mut client) in sent {
            let response = sent.and_then(|()| hello(&mut client));
            let may_fail = signal.get().is_some_and(|signal| at >= *signal);
            match response {
                Ok(true) => {}
                Ok(false) => open.push(client),
                Err(_) if may_fail => {}
                Err(error) => errors.push(format!("sent before the signal: {error}")),
            }
        }
    }
    errors.extend(
        open.iter_mut().filter_map(|client| client.end().err()).map(|error| format!("idle: {error}")),
    );
    errors
}

/// Drains a server with keep-alive load, a full accept queue and slow requests in flight.
pub(crate) fn under_load(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut server = context.example(&[("SHEARWATER_DRAIN_MS", DEADLINE.as_millis() as u64)])?;
    let address = server.address();
    let signal = OnceLock::new();
    thread::scope(|scope| {
        let load =
            scope.spawn(|| in_threads(LOAD_THREADS, |_| load(address, CONNECTIONS / LOAD_THREADS, &signal)));
        thread::sleep(Duration::from_secs(1));
        let slow = open(address, SLOW, &request("GET", &format!("/slow?ms={SLOW_MS}"), &[]))?;
        thread::sleep(PAUSE);
        server.signal(Signal::STOP)?;
        thread::sleep(PAUSE);
        let burst = open(address, BURST, &request("GET", "/", &[]).repeat(2))?;
        let signalled = *signal.get_or_init(Instant::now);
        server.signal(Signal::TERM)?;
        server.signal(Signal::CONT)?;

        let two = |client: &mut Client| match hello(client)? {
            true => Err(Error::Malformed("the first of two responses announced the end".to_owned())),
            false => hello(client),
        };
        let (announced, errors) = read_all(burst, two);
        report.none(format!("accept queue, {BURST} connections with two requests: errors"), &errors);
        report.check(
            "accept queue: announced ends",
            announced,
            format!(">= {}", BURST / 2),
            announced * 2 >= BURST,
        );
        let (_, errors) = read_all(slow, |client| read(client, b"slow\n"));
        report.none(format!("{SLOW} slow requests in flight: errors"), &errors);
        let errors = load.join().unwrap_or_else(|_| vec![vec!["a client panicked".to_owned()]]);
        report.none(format!("{CONNECTIONS} keep-alive connections under load: errors"), &errors.concat());
        let status = server.wait(DEADLINE + TOLERANCE);
        report.check("exit", exit(status), "exit status: 0", success(status));
        report.at_most("exit after", signalled.elapsed().as_secs_f64(), DEADLINE.as_secs_f64(), "s");
        Ok(())
    })
}
