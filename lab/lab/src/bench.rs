//! A server about to be measured: started on its core, probed, warm.

use std::net::SocketAddr;

use clap::{Args, value_parser};
use serde::Serialize;
use testkit::Response;

use crate::client::{Load, LoadCounts, Pacing};
use crate::folder::RunFolder;
use crate::process::{self, CLIENT_CORE, Launch, ServerProcess, free_address};
use crate::programs::OurPrograms;
use crate::scenario::Scenario;
use crate::server::ServerSpec;

/// Load before a window, by our own client, which checks status and length of every response.
const WARM_UP_MS: u64 = 300;
/// Most connections of the warm-up: it warms the server and doesn't fill it.
const WARM_UP_CONNECTIONS_MAX: u32 = 64;

/// Rounds and their length.
#[derive(Debug, Clone, Copy, Args, Serialize)]
pub(crate) struct RunSettings {
    /// Rounds; each server has one block in each
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) blocks: u32,
    /// Length of a block's window in seconds
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Rounds in which system calls are counted
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(0..=1_000))]
    pub(crate) syscall_rounds: u32,
    /// Seed of block orders and intervals
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Maximum run-queue wait of a valid block, in per cent of its window [default: 1, where connections end 3]
    #[arg(long)]
    pub(crate) wait_percent: Option<f64>,
}

/// Everything that all measurements of a run share.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) programs: &'a OurPrograms,
    pub(crate) folder: &'a RunFolder,
    pub(crate) settings: RunSettings,
}

/// A server, what it serves, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) bench: &'a Bench<'a>,
    pub(crate) spec: &'static ServerSpec,
    pub(crate) scenario: &'static Scenario,
    pub(crate) address: SocketAddr,
    /// Threads or processes that serve. Peers from crates have one in any case.
    pub(crate) workers: u32,
    /// Length of a null server's response.
    pub(crate) null_bytes: u64,
}

/// A started server that has responded correctly.
#[derive(Debug)]
pub(crate) struct StartedServer {
    pub(crate) process: ServerProcess,
    /// Length of its whole response.
    pub(crate) bytes: u64,
    /// Its command line.
    pub(crate) line: String,
}

impl<'a> Setup<'a> {
    /// Chooses a port.
    pub(crate) fn new(
        bench: &'a Bench<'a>,
        spec: &'static ServerSpec,
        scenario: &'static Scenario,
        workers: u32,
        null_bytes: u64,
    ) -> Result<Self, String> {
        Ok(Self { bench, spec, scenario, address: free_address()?, workers, null_bytes })
    }

    /// Starts the server and probes it.
    pub(crate) fn start(&self) -> Result<StartedServer, String> {
        self.start_as(&self.spec.launch(self)?)
    }

    /// Starts the server by another command and probes it.
    pub(crate) fn start_as(&self, launch: &Launch) -> Result<StartedServer, String> {
        let log = self.bench.folder.path().join("server.log");
        let process = ServerProcess::start(launch, self.address, &log)?;
        Ok(StartedServer { process, bytes: length(&self.probe()?), line: launch.line() })
    }

    /// Starts the server, probes it, and sends it a load for a moment.
    pub(crate) fn start_warm(&self) -> Result<StartedServer, String> {
        let mut server = self.start()?;
        let load = self.scenario.load(self.address, server.bytes, WARM_UP_MS);
        let connections = load.connections.min(WARM_UP_CONNECTIONS_MAX);
        let counts =
            self.run_load(&Load { connections, pacing: Pacing::Closed, latencies: false, ..load })?;
        match counts.status_errors + counts.socket_errors() {
            0 if counts.responses > 0 => {}
            0 => return Err("warm-up: no response".to_owned()),
            wrong => {
                return Err(format!("warm-up: {wrong} errors in {} responses: {counts:?}", counts.responses));
            }
        }
        server.process.find_processes();
        Ok(server)
    }

    /// Sends one request, whose response must be right to the byte; of a null server only the length is known.
    pub(crate) fn probe(&self) -> Result<Response, String> {
        let response = exchange(self.address, &self.scenario.request())?;
        let (null_bytes, body) = (self.null_bytes, self.scenario.body());
        match (response.status(), length(&response)) {
            (200, bytes) if self.spec.is_null() && bytes == null_bytes => Ok(response),
            (200, bytes) if self.spec.is_null() => Err(format!("probe: {bytes} bytes, not {null_bytes}")),
            (200, _) if response.body == body => Ok(response),
            (200, _) => Err(format!(
                "probe: a body of {} bytes, not the {} expected",
                response.body.len(),
                body.len()
            )),
            (status, _) => Err(format!("probe: status {status}")),
        }
    }

    /// Returns the command that runs our own client with a load.
    pub(crate) fn own_client(&self, load: &Load) -> Result<Launch, String> {
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let load = serde_json::to_string(load).map_err(|error| error.to_string())?;
        let file = self.bench.folder.write("load.json", &load)?;
        Ok(Launch::new(program, ["client".to_owned(), file.display().to_string()]))
    }

    /// Runs our own client on its core.
    pub(crate) fn run_load(&self, load: &Load) -> Result<LoadCounts, String> {
        run_client(&self.own_client(load)?)
    }
}

/// Runs a client to its end, on its core.
pub(crate) fn run_client(client: &Launch) -> Result<LoadCounts, String> {
    let printed = process::output(client.on_core(CLIENT_CORE))?;
    LoadCounts::parse(&printed).ok_or_else(|| format!("the client printed no counts: {printed:?}"))
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
