//! One block: a fresh server, a probe, a warm-up, a window, and a judgement.

use std::net::SocketAddr;
use std::time::Instant;

use serde::Serialize;
use testkit::Response;

use crate::client::{Load, Pacing, Tally};
use crate::proc_fs::{self, Resident, Threads};
use crate::process::{self, CLIENT_CORE, Launch, SERVER_CORE, Server};
use crate::scenario::Scenario;
use crate::server::{Kind, Place, ServerKind};
use crate::validity::{self, Fault};
use crate::wrk;

/// Load before the window, by our own client, which checks status and length of every response.
const WARM_UP_MS: u64 = 300;
/// Most connections of the warm-up: it warms the server and doesn't fill it.
const WARM_UP_CONNECTIONS_MAX: u32 = 64;
/// Seconds in which system calls are counted, and one more for so many connections: their accepts count too.
const SYSCALLS_S: u32 = 1;
const SYSCALLS_CONNECTIONS: u32 = 1_000;
const SYSCALL_EVENT: &str = "raw_syscalls:sys_enter";

/// A block's task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) server: &'a ServerKind,
    pub(crate) scenario: &'a Scenario,
    pub(crate) place: Place<'a>,
    pub(crate) seconds: u32,
    pub(crate) wait_percent_max: f64,
}

/// A block's figures, by their names in the file of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Block {
    /// Reasons for which it does not count.
    pub(crate) faults: Vec<Fault>,
    #[serde(flatten)]
    pub(crate) tally: Tally,
    #[serde(rename = "answer_bytes")]
    pub(crate) response_bytes: u64,
    #[serde(skip)]
    pub(crate) response_bytes_after: u64,
    pub(crate) window_ns: u64,
    pub(crate) server_cpu_ns: u64,
    pub(crate) server_wait_ns: u64,
    /// Time of others on the server's core.
    pub(crate) foreign_ns: u64,
    pub(crate) client_busy_percent: f64,
    /// Handlers ready in a turn, on average.
    #[serde(rename = "handlers_ready_a_turn")]
    pub(crate) ready: Option<f64>,
    #[serde(flatten)]
    pub(crate) resident: Resident,
    #[serde(rename = "server_command")]
    pub(crate) server_line: String,
    #[serde(rename = "client_command")]
    pub(crate) client_line: String,
}

impl Block {
    pub(crate) fn failed(reason: String) -> Self {
        Self { faults: vec![Fault::Failed(reason)], ..Self::default() }
    }

    /// Returns true if it counts.
    pub(crate) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns true if it could not be run.
    pub(crate) fn has_failed(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Failed(_)))
    }

    /// Returns the faults in one line.
    pub(crate) fn reasons(&self) -> String {
        self.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Returns the server's CPU time per response in microseconds, if the block counts.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        self.is_valid().then(|| self.server_cpu_ns as f64 / self.tally.responses as f64 / 1e3)
    }

    /// Returns responses per second, if the block counts and the client was not the limit.
    pub(crate) fn rps(&self) -> Option<f64> {
        self.responses_per_second().filter(|_| !validity::is_client_bound(self.client_busy_percent))
    }

    /// Returns responses per second, whatever was the limit.
    pub(crate) fn responses_per_second(&self) -> Option<f64> {
        self.is_valid().then(|| self.tally.responses as f64 / (self.tally.duration_us as f64 / 1e6))
    }
}

/// A started server that responds correctly and is warm.
struct Running {
    server: Server,
    bytes: u64,
    line: String,
}

impl Order<'_> {
    /// Runs a block; failures are part of it.
    pub(crate) fn run(&self) -> Block {
        self.measure().unwrap_or_else(Block::failed)
    }

    fn measure(&self) -> Result<Block, String> {
        let Running { server, bytes, line } = self.start_warm()?;
        let client = self.client(self.seconds, bytes)?;
        let ready_before = self.ready_counts()?;
        let (before, client_before_ms) = (Threads::of(server.ids())?, proc_fs::children_cpu_ms());
        let idle_before_ns = proc_fs::idle_ns(SERVER_CORE)?;
        let started = Instant::now();
        let tally = run_client(&client)?;
        let window_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let spent = Threads::of(server.ids())?.since(&before)?;
        let idle_ns = proc_fs::idle_ns(SERVER_CORE)?.saturating_sub(idle_before_ns);
        let client_ms = proc_fs::children_cpu_ms().saturating_sub(client_before_ms);
        let ready = self.ready_counts()?.zip(ready_before).map(|(now, before)| {
            let [turns, ready] = [now.0 - before.0, now.1 - before.1];
            ready / turns.max(1.0)
        });
        // Before the second probe, which is no part of the window.
        let resident = Resident::of(server.ids());
        let mut block = Block {
            faults: Vec::new(),
            tally,
            response_bytes: bytes,
            response_bytes_after: length(&self.probe()?),
            window_ns,
            server_cpu_ns: spent.cpu_ns,
            server_wait_ns: spent.wait_ns,
            foreign_ns: window_ns.saturating_sub(idle_ns).saturating_sub(spent.cpu_ns),
            client_busy_percent: validity::percent(client_ms * 1_000_000, window_ns),
            ready,
            resident,
            server_line: line,
            client_line: client.line(),
        };
        block.faults =
            validity::judge(&block, self.scenario, self.server, self.seconds, self.wait_percent_max);
        Ok(block)
    }

    /// Counts system calls per response by perf, in a block of its own.
    pub(crate) fn syscalls_per_response(&self) -> Result<f64, String> {
        let Running { server, bytes, .. } = self.start_warm()?;
        let seconds = SYSCALLS_S + self.scenario.connections / SYSCALLS_CONNECTIONS;
        let client = self.client(seconds, bytes)?.on_core(CLIENT_CORE);
        // Emptied, so that an earlier count can't pass for a missing one.
        let counted = self.place.folder.write("syscalls", "")?;
        let ids: Vec<String> = server.ids().iter().map(u32::to_string).collect();
        let mut perf = std::process::Command::new("perf");
        perf.args(["stat", "-x,", "-e", SYSCALL_EVENT, "-p", &ids.join(","), "-o"]).arg(&counted);
        perf.arg("--").arg(client.get_program()).args(client.get_args());
        let tally = Tally::parse(&process::output(perf)?).ok_or("the client printed no counts")?;
        if tally.responses == 0 || tally.socket_errors() + tally.status_errors > 0 {
            return Err("the load had errors".to_owned());
        }
        let count = std::fs::read_to_string(&counted).ok().and_then(|text| parse_syscalls(&text));
        Ok(count.ok_or("perf counted nothing")? as f64 / tally.responses as f64)
    }

    /// Starts the server.
    pub(crate) fn start(&self) -> Result<(Server, String), String> {
        let launch = self.server.launch(self.scenario, &self.place)?;
        let log = self.place.folder.path().join("server.log");
        Ok((Server::start(&launch, self.place.address, &log)?, launch.line()))
    }

    fn start_warm(&self) -> Result<Running, String> {
        let (mut server, line) = self.start()?;
        let bytes = length(&self.probe()?);
        self.warm_up(bytes)?;
        server.find_processes();
        Ok(Running { server, bytes, line })
    }

    /// Sends one request, whose response must be right to the byte; of a null server only the length is known.
    pub(crate) fn probe(&self) -> Result<Response, String> {
        let response = exchange(self.place.address, &self.scenario.request())?;
        let (bytes, body) = (self.place.null_bytes, self.scenario.body());
        match self.server.kind {
            _ if response.status() != 200 => Err(format!("probe: status {}", response.status())),
            Kind::Null if length(&response) == bytes => Ok(response),
            Kind::Null => Err(format!("probe: {} bytes, not {bytes}", length(&response))),
            _ if response.body == body => Ok(response),
            _ => Err(format!(
                "probe: a body of {} bytes, not the {} expected",
                response.body.len(),
                body.len()
            )),
        }
    }

    fn warm_up(&self, bytes: u64) -> Result<(), String> {
        let load = self.scenario.load(self.place.address, bytes, WARM_UP_MS);
        let connections = load.connections.min(WARM_UP_CONNECTIONS_MAX);
        let load = Load { connections, pacing: Pacing::Closed, latencies: false, ..load };
        let tally = run_client(&own_client(&load)?)?;
        match tally.status_errors + tally.socket_errors() {
            0 if tally.responses > 0 => Ok(()),
            0 => Err("warm-up: no response".to_owned()),
            wrong => Err(format!("warm-up: {wrong} errors in {} responses: {tally:?}", tally.responses)),
        }
    }

    fn client(&self, seconds: u32, bytes: u64) -> Result<Launch, String> {
        let (scenario, place) = (self.scenario, &self.place);
        if scenario.uses_wrk() {
            let script = place.folder.write("wrk.lua", &wrk::script(scenario))?;
            return Ok(wrk::launch(scenario, &script, place.address, seconds));
        }
        own_client(&scenario.load(place.address, bytes, u64::from(seconds) * 1000))
    }

    /// Returns the server's turns with handlers so far, and the handlers ready in them, if the scenario needs them.
    fn ready_counts(&self) -> Result<Option<(f64, f64)>, String> {
        if self.scenario.ready_min.is_none() {
            return Ok(None);
        }
        let text = exchange(self.place.address, "GET /counts HTTP/1.1\r\nHost: lab\r\n\r\n")?.text();
        parse_ready(&text).map(Some).ok_or_else(|| format!("/counts: {text:?}"))
    }
}

/// Sends a request on a connection of its own and receives the response.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> Result<Response, String> {
    let method = request.split(' ').next().unwrap_or_default();
    let received = testkit::Client::connect(address).and_then(|mut client| {
        // One write: null servers respond to whatever they receive.
        client.send(request)?;
        client.response_to(method)
    });
    received.map_err(|error| format!("{}: {error}", request.lines().next().unwrap_or_default()))
}

/// Returns the length of a whole response with a `Content-Length`.
pub(crate) fn length(response: &Response) -> u64 {
    (response.head.text().len() + response.body.len()) as u64
}

/// Returns the command that runs our own client with a load.
pub(crate) fn own_client(load: &Load) -> Result<Launch, String> {
    let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let load = serde_json::to_string(load).map_err(|error| error.to_string())?;
    Ok(Launch::new(program, ["client".to_owned(), load]))
}

/// Runs a client to its end, on its core.
pub(crate) fn run_client(client: &Launch) -> Result<Tally, String> {
    let printed = process::output(client.on_core(CLIENT_CORE))?;
    Tally::parse(&printed).ok_or_else(|| format!("the client printed no counts: {printed:?}"))
}

fn parse_ready(text: &str) -> Option<(f64, f64)> {
    let field = |name: &str| text.split_whitespace().find_map(|pair| pair.strip_prefix(name))?.parse().ok();
    Some((field("turns=")?, field("ready=")?))
}

/// Parses perf's count; none where it could not count.
fn parse_syscalls(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(SYSCALL_EVENT))?;
    line.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_counts_of_perf_and_of_the_example() {
        let counted = "# started on Sat\n\n421337,,raw_syscalls:sys_enter,5000000,100.00,,\n";
        assert_eq!(parse_syscalls(counted), Some(421_337));
        assert_eq!(parse_syscalls("<not counted>,,raw_syscalls:sys_enter,0,0.00,,\n"), None);
        assert_eq!(parse_ready("kinds turns=15 ready=2010\n"), Some((15.0, 2010.0)));
        assert_eq!(parse_ready("kinds turns=15"), None);
    }
}
