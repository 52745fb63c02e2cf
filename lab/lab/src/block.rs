//! One block: a fresh server, a warm-up, a window, and a judgement.

use std::time::Instant;

use crate::core_time;
use crate::memory::{self, Resident};
use crate::probe::{self, Answer};
use crate::process::{self, CLIENT_CORE, Launch, SERVER_CORE, Server};
use crate::scenario::{Generator, Scenario};
use crate::schedstat;
use crate::server::{Kind, Place, ServerKind};
use crate::syscalls;
use crate::tally::Tally;
use crate::validity::{self, Evidence, Fault};
use crate::wrk;

/// Load before the window: our own client, which looks at the status and the length of every answer.
const WARM_UP_MS: u64 = 300;
/// Connections of the warm-up, at most: it is to warm the server, not to fill it.
const WARM_UP_CONNECTIONS_MAX: u32 = 64;
/// Load while system calls are counted, in seconds, and one more for so many connections: their accepts count too.
const SYSCALLS_S: u32 = 1;
const SYSCALLS_CONNECTIONS: u32 = 1_000;

/// What a block is to measure.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The server.
    pub server: &'a ServerKind,
    /// The load.
    pub scenario: &'a Scenario,
    /// Where.
    pub place: Place<'a>,
    /// Length of the window.
    pub seconds: u32,
    /// The bound on run-queue wait, in per cent of the window.
    pub wait_percent_max: f64,
}

/// What a block has measured.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Why it does not count; nothing: it counts.
    pub faults: Vec<Fault>,
    /// The client's counts.
    pub tally: Tally,
    /// Length of an answer.
    pub answer_bytes: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// CPU time of the server.
    pub server_cpu_ns: u64,
    /// Run-queue wait of the server.
    pub server_wait_ns: u64,
    /// What others ran on the server's core.
    pub foreign_ns: u64,
    /// How busy the client was, in per cent of the window.
    pub client_busy_percent: f64,
    /// Memory of the server, after the window.
    pub resident: Resident,
    /// How the server was started.
    pub server_line: String,
    /// How the client was started.
    pub client_line: String,
}

impl Block {
    /// A block that could not be run.
    pub fn failed(reason: String) -> Self {
        Self { faults: vec![Fault::Failed(reason)], ..Self::default() }
    }

    /// Whether it counts.
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// CPU time of the server per response in microseconds; none if the block does not count.
    pub fn cpu_us(&self) -> Option<f64> {
        self.is_valid().then(|| self.server_cpu_ns as f64 / self.tally.responses as f64 / 1e3)
    }

    /// Responses per second; none if the block does not count or the client was the limit.
    pub fn rps(&self) -> Option<f64> {
        let counts = self.is_valid() && !validity::is_client_bound(self.client_busy_percent);
        counts.then(|| self.tally.responses as f64 / (self.tally.duration_us as f64 / 1e6))
    }
}

/// Runs a block. What goes wrong is in it.
pub fn run(order: &Order<'_>) -> Block {
    measure(order).unwrap_or_else(Block::failed)
}

fn measure(order: &Order<'_>) -> Result<Block, String> {
    let (launch, mut server) = start(order)?;
    let answer = checked_probe(order)?;
    warm_up(order, answer.bytes)?;
    server.find_processes();
    let measured = client(order, order.seconds, answer.bytes)?;
    let before = schedstat::of_processes(server.ids())?;
    let client_before_ms = process::children_cpu_ms();
    let idle_before_ns = core_time::idle_ns(SERVER_CORE)?;
    let started = Instant::now();
    let tally = load(&measured)?;
    let window_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let spent = schedstat::of_processes(server.ids())?.since(&before)?;
    let idle_ns = core_time::idle_ns(SERVER_CORE)?.saturating_sub(idle_before_ns);
    let foreign_ns = core_time::foreign_ns(window_ns, idle_ns, spent.cpu_ns);
    let client_ms = process::children_cpu_ms().saturating_sub(client_before_ms);
    let resident = memory::of_processes(server.ids());
    let after = checked_probe(order)?;
    let faults = validity::judge(&Evidence {
        tally,
        answer_bytes: answer.bytes,
        answer_bytes_after: after.bytes,
        in_flight_bytes_max: order.scenario.in_flight_bytes_max(answer.bytes),
        server_cpu_ns: spent.cpu_ns,
        server_wait_ns: spent.wait_ns,
        foreign_ns: order.server.has_pool().then_some(foreign_ns),
        window_ns,
        wait_percent_max: order.wait_percent_max,
    });
    Ok(Block {
        faults,
        tally,
        answer_bytes: answer.bytes,
        window_ns,
        server_cpu_ns: spent.cpu_ns,
        server_wait_ns: spent.wait_ns,
        foreign_ns,
        client_busy_percent: validity::percent(client_ms * 1_000_000, window_ns),
        resident,
        server_line: launch.line(),
        client_line: measured.line(),
    })
}

/// A moment of load in which every single answer is looked at.
fn warm_up(order: &Order<'_>, answer_bytes: u64) -> Result<(), String> {
    let connections = order.scenario.connections.min(WARM_UP_CONNECTIONS_MAX);
    let tally = load(&own_client(order, WARM_UP_MS, answer_bytes, connections)?)?;
    let wrong = tally.status_errors + tally.socket_errors();
    match tally.responses {
        0 => Err("warm-up: no response".to_owned()),
        responses if wrong > 0 => Err(format!("warm-up: {wrong} errors in {responses} responses: {tally}")),
        _ => Ok(()),
    }
}

/// System calls per response, in a block of its own.
///
/// # Errors
/// perf is missing or not allowed to, or the load failed.
pub fn syscalls_per_response(order: &Order<'_>) -> Result<f64, String> {
    let (_, mut server) = start(order)?;
    let answer = checked_probe(order)?;
    warm_up(order, answer.bytes)?;
    server.find_processes();
    let seconds = SYSCALLS_S + order.scenario.connections / SYSCALLS_CONNECTIONS;
    let client = client(order, seconds, answer.bytes)?;
    // An earlier count must not stand for one that was not written.
    let output = order.place.site.write("syscalls", "")?;
    let ran = syscalls::counting(server.ids(), &output, &client, CLIENT_CORE).output();
    let ran = ran.map_err(|error| format!("perf: {error}"))?;
    if !ran.status.success() {
        return Err(format!("perf: {}: {}", ran.status, process::last_words(&ran.stderr)));
    }
    let tally = Tally::parse(&String::from_utf8_lossy(&ran.stdout)).ok_or("the client counted nothing")?;
    if tally.responses == 0 || tally.socket_errors() + tally.status_errors > 0 {
        return Err("the load was not clean".to_owned());
    }
    let count = std::fs::read_to_string(&output).ok().and_then(|text| syscalls::parse(&text));
    let count = count.ok_or("perf counted nothing")?;
    Ok(count as f64 / tally.responses as f64)
}

/// Starts the server of an order.
///
/// # Errors
/// It cannot be started, with what it said.
pub fn start(order: &Order<'_>) -> Result<(Launch, Server), String> {
    let launch = order.server.launch(order.scenario, &order.place)?;
    let log = order.place.site.folder().join("server.log");
    let server = Server::start(&launch, order.place.address, &log)?;
    Ok((launch, server))
}

/// One request whose answer must be right to the byte.
///
/// # Errors
/// What is wrong with it.
pub fn checked_probe(order: &Order<'_>) -> Result<Answer, String> {
    let answer = probe::get(order.place.address, &order.scenario.target(0))?;
    if answer.status != 200 {
        return Err(format!("probe: status {}", answer.status));
    }
    let wanted = order.scenario.body();
    if order.server.kind == Kind::Null {
        let bytes = order.place.null_bytes;
        let right = answer.bytes == bytes;
        return if right { Ok(answer) } else { Err(format!("probe: {} bytes, not {bytes}", answer.bytes)) };
    }
    if answer.body != wanted {
        return Err(format!("probe: a body of {} bytes, not the {} wanted", answer.body.len(), wanted.len()));
    }
    Ok(answer)
}

fn client(order: &Order<'_>, seconds: u32, bytes: u64) -> Result<Launch, String> {
    let (scenario, place) = (order.scenario, &order.place);
    match scenario.generator() {
        Generator::Wrk => {
            let script = place.site.write("wrk.lua", &wrk::script(scenario))?;
            let arguments = wrk::arguments(scenario, &script, place.address, seconds);
            Ok(Launch { program: "wrk".into(), arguments, environment: Vec::new() })
        }
        Generator::Own => own_client(order, u64::from(seconds) * 1000, bytes, scenario.connections),
    }
}

fn own_client(order: &Order<'_>, millis: u64, bytes: u64, connections: u32) -> Result<Launch, String> {
    let (name, address) = (order.scenario.name, order.place.address);
    Launch::of_client(&format!(
        "client --scenario {name} --address {address} --millis {millis} --bytes {bytes} --connections {connections}"
    ))
}

/// Runs a client to its end.
fn load(client: &Launch) -> Result<Tally, String> {
    client.counts(Tally::parse)
}
