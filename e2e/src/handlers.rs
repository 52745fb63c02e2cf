//! Group `handlers`: every fault of a handler in every kind of handler, each against a server of its own, as in `docs/guide/handlers.md`.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use testkit::{Client, Error, Program, Response, request};

use crate::cases::Case;
use crate::context::{Context, wait_until};
use crate::counters::Counters;
use crate::report::Report;

const TIMEOUT: Duration = Duration::from_secs(10);
const SIGABRT: i32 = 6;
/// Interval at which the server looks for blocking handlers.
const WATCHDOG_MS: u64 = 50;
/// A body that no socket buffer holds: its sender waits until the server reads.
const LARGE_BYTES: usize = 8 * 1024 * 1024;
/// Time for a request to reach its handler.
const PAUSE: Duration = Duration::from_millis(50);

const ALL: &[&str] = &["sync", "async", "coroutine"];
/// Kinds that may wait.
const WAITING: &[&str] = &["async", "coroutine"];

type Visit = fn(SocketAddr, &str) -> Result<(), Error>;

/// A fault, and the promised behaviour of the server.
struct Fault {
    name: &'static str,
    /// Route below the kind's prefix.
    route: &'static str,
    kinds: &'static [&'static str],
    promise: &'static str,
    /// Sends the request and compares the response with the promise.
    visit: Visit,
    /// Text in the log; without it the log must not mention a handler.
    logged: Option<&'static str>,
    /// Faults that the server has counted at its exit; `None` if the process aborts.
    counted: Option<&'static str>,
}

const fn fault(
    (name, route): (&'static str, &'static str),
    kinds: &'static [&'static str],
    promise: &'static str,
    visit: Visit,
    logged: Option<&'static str>,
    counted: Option<&'static str>,
) -> Fault {
    Fault { name, route, kinds, promise, visit, logged, counted }
}

const PANICKED: Option<&str> = Some("a handler panicked (asked to)");
const ONE_PANIC: Option<&str> = Some("handler_panics 1");
const ONE_ERROR: Option<&str> = Some("handler_errors 1");
const NOTHING: Option<&str> = Some("");

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    fault(("panics", "panic"), ALL, "500, close; logged", fails, PANICKED, ONE_PANIC),
    fault(("panics-after-the-head", "panic-behind"), WAITING, "cut off; logged", |address, target| is_cut_off(address, target, "begun"), PANICKED, ONE_PANIC),
    fault(("fails", "fails"), WAITING, "500, close; logged", fails, Some("a handler has failed: no luck"), ONE_ERROR),
    fault(("overflows-a-thread", "overflow"), &["sync", "async"], "SIGABRT; thread logged", gets_nothing, Some("has overflowed its stack"), None),
    fault(("overflows-a-coroutine", "overflow"), &["coroutine"], "SIGABRT; route and size logged", gets_nothing, Some("coroutine GET /coroutine/overflow has overflowed its stack of 262144 bytes"), None),
    fault(("never-reads-its-body", "unread"), ALL, "body discarded, 200, keep-alive", discards_the_body, None, NOTHING),
    fault(("ignores-a-body", "ignores"), WAITING, "200, close, no reset", |address, target| responds_early(address, target, false), None, NOTHING),
    fault(("responds-before-the-body", "early"), WAITING, "200, close, no reset", |address, target| responds_early(address, target, true), None, NOTHING),
    fault(("client-leaves-a-waiting-handler", "waits"), WAITING, "handler dropped", |address, target| leaves(address, &request("GET", target, &[])), None, NOTHING),
    fault(("client-leaves-in-a-body", "waits"), WAITING, "handler dropped", |address, target| leaves(address, &[post(target), vec![b'x'; 1000]].concat()), None, NOTHING),
    fault(("client-closes-in-a-stream", "streams"), WAITING, "handler dropped", closes_in_a_stream, None, NOTHING),
    fault(("sets-a-length", "length"), &["sync"], "500, close; logged", fails, Some("Content-Length"), ONE_ERROR),
    fault(("sends-too-little", "length/5"), WAITING, "cut off; logged", |address, target| is_cut_off(address, target, "xxxxx"), Some("a handler has sent less than it had announced"), ONE_ERROR),
    fault(("sends-too-much", "length/15"), WAITING, "announced length, keep-alive; logged", gets_the_announced_length, Some("a handler has sent more than it had announced"), ONE_ERROR),
    fault(("blocks-its-worker", "blocks/1000"), ALL, "others wait, all get responses; logged", delays_others, Some("a handler has blocked it for"), NOTHING),
];

/// Returns a case for each fault.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    FAULTS.iter().map(|fault| Case {
        group: "handlers",
        name: fault.name.to_owned(),
        about: format!("{}: {}", fault.kinds.join(", "), fault.promise),
        run: Box::new(|context, report| fault.run(&context.with_one_worker(), report)),
    })
}

impl Fault {
    fn run(&self, context: &Context<'_>, report: &mut Report) -> Result<()> {
        // Only where a handler blocks: on a busy machine a worker may stall without one.
        let watchdog_ms = if self.route.starts_with("blocks") { WATCHDOG_MS } else { 0 };
        for kind in self.kinds {
            let mut server = context.example(&[("SHEARWATER_WATCHDOG_MS", watchdog_ms)])?;
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
        if !wait_until(TIMEOUT, || alive(address) == Ok(0)) {
            return Err("something of the handler is left".to_owned());
        }
        if let Some(text) = self.logged
            && !wait_until(TIMEOUT, || server.log().contains(text))
        {
            return Err(format!("not logged: {text:?}"));
        }
        // An idle client would delay the exit.
        drop(other);
        match server.stop(TIMEOUT) {
            Some(status) if status.success() => {}
            other => return Err(format!("exit: {other:?}")),
        }
        if self.logged.is_none() && server.log().contains("a handler") {
            return Err(format!("logged: {}", server.log()));
        }
        match Counters::at_exit(server) {
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
        match self.logged {
            Some(text) if !server.log().contains(text) => Err(format!("log: {}", server.log())),
            _ => Ok(()),
        }
    }
}

/// Number of the handlers' guards that are alive in the server.
fn alive(address: SocketAddr) -> Result<u64, Error> {
    let response = Client::connect(address)?.get("/alive")?;
    response.text().parse().map_err(|_| Error::Malformed(response.text()))
}

fn hello(client: &mut Client) -> Result<(), Error> {
    let response = client.get("/")?;
    expect(&response, 200, b"Hello, world\n", false)
}

fn expect(response: &Response, status: u16, body: &[u8], closes: bool) -> Result<(), Error> {
    if response.status() == status && response.body == body && response.head.closes() == closes {
        return Ok(());
    }
    Err(Error::Malformed(format!("{:?} {:?}", response.head.text(), response.text())))
}

fn post(target: &str) -> Vec<u8> {
    request("POST", target, &[&format!("Content-Length: {LARGE_BYTES}")])
}

/// Expects a 500 and the end of the connection without a reset.
fn fails(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    expect(&client.get(target)?, 500, b"Internal Server Error\n", true)?;
    client.end()
}

/// Expects a response that ends short of its framing, without a reset.
fn is_cut_off(address: SocketAddr, target: &str, sent: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send(request("GET", target, &[]))?;
    let head = client.head("GET")?;
    let mut body = Vec::new();
    let end = loop {
        match client.data(usize::MAX, &mut |data| body.extend_from_slice(data)) {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    if head.status == 200 && body == sent.as_bytes() && end == Err(Error::Truncated) {
        return Ok(());
    }
    Err(Error::Malformed(format!("{}, {:?}, {end:?}", head.status, String::from_utf8_lossy(&body))))
}

/// Expects the end of the connection without a response, in any form.
fn gets_nothing(address: SocketAddr, target: &str) -> Result<(), Error> {
    match Client::connect(address)?.get(target) {
        Err(Error::Closed | Error::Reset) => Ok(()),
        Err(error) => Err(error),
        Ok(response) => Err(Error::Malformed(response.head.text().to_owned())),
    }
}

fn gets_the_announced_length(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    expect(&client.get(target)?, 200, b"xxxxxxxxxx", false)?;
    hello(&mut client)
}

fn discards_the_body(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send([post(target), vec![b'x'; LARGE_BYTES]].concat())?;
    expect(&client.response()?, 200, b"unread", false)?;
    hello(&mut client)
}

/// Expects a response whose body is never read; the request's body is sent before or after it.
fn responds_early(address: SocketAddr, target: &str, before_the_body: bool) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send(post(target))?;
    if before_the_body {
        expect(&client.response()?, 200, b"early", true)?;
    }
    client.send(vec![b'x'; LARGE_BYTES])?;
    client.finish_sending()?;
    if !before_the_body {
        expect(&client.response()?, 200, b"ignored", true)?;
    }
    client.end()
}

/// Sends a request and resets the connection once its handler has been called.
fn leaves(address: SocketAddr, bytes: &[u8]) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send(bytes)?;
    if !wait_until(TIMEOUT, || alive(address) == Ok(1)) {
        return Err(Error::Malformed("the handler was not called".to_owned()));
    }
    client.reset()
}

fn closes_in_a_stream(address: SocketAddr, target: &str) -> Result<(), Error> {
    let mut client = Client::connect(address)?;
    client.send(request("GET", target, &[]))?;
    client.head("GET")?;
    client.finish_sending()
}

/// Expects other connections of the worker to wait until the handler returns.
fn delays_others(address: SocketAddr, target: &str) -> Result<(), Error> {
    let (mut client, mut other) = (Client::connect(address)?, Client::connect(address)?);
    client.send(request("GET", target, &[]))?;
    thread::sleep(PAUSE);
    hello(&mut other)?;
    expect(&client.response()?, 200, b"blocked", false)?;
    hello(&mut client)
}
