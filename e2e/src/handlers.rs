//! Group `handlers`: panics, errors and stack overflows in every kind of handler, in the release profile, each against a server of its own.
//!
//! `crates/shearwater/tests/it/misbehaving.rs` shows every other fault of `docs/guide/handlers.md`.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use anyhow::Result;
use testkit::{Client, Error, Program, Response, request};

use crate::cases::TestCase;
use crate::context::{CaseContext, wait_until};
use crate::counters::LoggedCounters;
use crate::report::CaseReport;

const TIMEOUT: Duration = Duration::from_secs(10);
const SIGABRT: i32 = 6;

const ALL: &[&str] = &["sync", "async", "coroutine"];
/// Kinds that may wait.
const WAITING: &[&str] = &["async", "coroutine"];

/// A fault, and the promised behaviour of the server.
struct HandlerFault {
    name: &'static str,
    /// Route below the kind's prefix.
    route: &'static str,
    kinds: &'static [&'static str],
    promise: &'static str,
    /// Sends the request and compares the response with the promise.
    visit: fn(SocketAddr, &str) -> Result<(), Error>,
    /// Text in the log.
    logged: &'static str,
    /// Faults that the server has counted at its exit; `None` if the process aborts.
    counted: Option<&'static str>,
}

#[rustfmt::skip]
const FAULTS: &[HandlerFault] = &[
    HandlerFault { name: "panics", route: "panic", kinds: ALL, promise: "500, close; logged", visit: fails,
        logged: "a handler panicked (asked to)", counted: Some("handler_panics 1") },
    HandlerFault { name: "panics-after-the-head", route: "panic-behind", kinds: WAITING, promise: "cut off; logged", visit: is_cut_off,
        logged: "a handler panicked (asked to)", counted: Some("handler_panics 1") },
    HandlerFault { name: "fails", route: "fails", kinds: WAITING, promise: "500, close; logged", visit: fails,
        logged: "a handler has failed: no luck", counted: Some("handler_errors 1") },
    HandlerFault { name: "overflows-a-thread", route: "overflow", kinds: &["sync", "async"], promise: "SIGABRT; thread logged", visit: gets_nothing,
        logged: "has overflowed its stack", counted: None },
    HandlerFault { name: "overflows-a-coroutine", route: "overflow", kinds: &["coroutine"], promise: "SIGABRT; route and size logged", visit: gets_nothing,
        logged: "coroutine GET /coroutine/overflow has overflowed its stack of 262144 bytes", counted: None },
];

/// Returns a case for each fault.
pub(crate) fn cases() -> impl Iterator<Item = TestCase> {
    FAULTS.iter().map(|fault| TestCase {
        group: "handlers",
        name: fault.name.to_owned(),
        about: format!("{}: {}", fault.kinds.join(", "), fault.promise),
        run: Box::new(|context, report| fault.run(&context.with_one_worker(), report)),
    })
}

impl HandlerFault {
    fn run(&self, context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
        for kind in self.kinds {
            let mut server = context.example(&[])?;
            let target = format!("/{kind}/{}", self.route);
            let outcome = match self.counted {
                Some(counted) => self.survives(&mut server, &target, counted),
                None => self.aborts(&mut server, &target),
            };
            let measured = outcome.as_ref().err().map_or("as promised", String::as_str);
            report.check(kind, measured, self.promise, outcome.is_ok());
        }
        Ok(())
    }

    /// Checks that other connections are served, nothing of the handler is left, and the log and the counters are right.
    fn survives(&self, server: &mut Program, target: &str, counted: &str) -> Result<(), String> {
        let address = server.address();
        let mut other = Client::connect(address).map_err(|error| error.to_string())?;
        hello(&mut other).map_err(|error| format!("another connection, before: {error}"))?;
        (self.visit)(address, target).map_err(|error| error.to_string())?;
        hello(&mut other).map_err(|error| format!("another connection, after: {error}"))?;
        if !wait_until(TIMEOUT, || other.get("/alive").is_ok_and(|response| response.body == b"0")) {
            return Err("something of the handler is left".to_owned());
        }
        if !wait_until(TIMEOUT, || server.log().contains(self.logged)) {
            return Err(format!("not logged: {:?}", self.logged));
        }
        // An idle client would delay the exit.
        drop(other);
        match server.stop(TIMEOUT) {
            Some(status) if status.success() => {}
            other => return Err(format!("exit: {other:?}")),
        }
        match LoggedCounters::at_exit(server) {
            Some(found) if found.faults == counted && found.open == 0 => Ok(()),
            other => Err(format!("counters: {other:?}")),
        }
    }

    fn aborts(&self, server: &mut Program, target: &str) -> Result<(), String> {
        (self.visit)(server.address(), target).map_err(|error| error.to_string())?;
        let status = server.wait(TIMEOUT);
        if status.and_then(|status| status.signal()) != Some(SIGABRT) {
            return Err(format!("exit: {status:?}"));
        }
        if server.log().contains(self.logged) { Ok(()) } else { Err(format!("log: {}", server.log())) }
    }
}

fn hello(client: &mut Client) -> Result<(), Error> {
    expect(&client.get("/")?, 200, b"Hello, world\n", false)
}

fn expect(response: &Response, status: u16, body: &[u8], closes: bool) -> Result<(), Error> {
    if response.status() == status && response.body == body && response.head.closes() == closes {
        return Ok(());
    }
    Err(Error::Malformed(format!("{:?} {:?}", response.head.text(), response.text())))
}

/// Expects a 500 and the end of the connection without a reset.
fn fails(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    expect(&client.get(target)?, 500, b"Internal Server Error\n", true)?;
    client.end()
}

/// Expects a response whose chunks have no end, and the end of the connection without a reset.
fn is_cut_off(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send(request("GET", target, &[]))?;
    match (client.head("GET")?.status, client.rest()?) {
        (200, body) if body == b"5\r\nbegun\r\n" => Ok(()),
        (status, body) => Err(Error::Malformed(format!("{status}, {:?}", String::from_utf8_lossy(&body)))),
    }
}

/// Expects the end of the connection without a response, in any form.
fn gets_nothing(address: SocketAddr, target: &str) -> Result<(), Error> {
    match Client::connect(address)?.get(target) {
        Err(Error::Closed | Error::Reset) => Ok(()),
        Err(error) => Err(error),
        Ok(response) => Err(Error::Malformed(response.head.text().to_owned())),
    }
}
