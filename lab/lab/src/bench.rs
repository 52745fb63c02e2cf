//! A server about to be measured: started on its core, probed, warm.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use clap::{Args, value_parser};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use testkit::Response;

use crate::client::{ClientTls, ExpectedResponse, Handshakes, Load, LoadCounts, Pacing, TextStream};
use crate::file_set::FileContent;
use crate::folder::RunFolder;
use crate::process::{self, CLIENT_CORE, ServerProcess, on_core};
use crate::programs::{OurPrograms, root};
use crate::scenario::Scenario;
use crate::server::ServerSpec;
use crate::suite::journal::Journal;

/// Most connections of the warm-up: it warms the server and doesn't fill it.
const WARM_UP_CONNECTIONS_MAX: u32 = 64;
/// Arguments that make this program a client.
#[cfg(not(test))]
const OWN_CLIENT: &[&str] = &["client"];
#[cfg(test)]
const OWN_CLIENT: &[&str] = crate::block::tests::broken_peer::CLIENT;

/// Rounds and their length.
#[derive(Debug, Clone, Copy, Default, Args, Serialize)]
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
    /// Rounds in which instructions are counted, at least one
    #[arg(skip)]
    pub(crate) instruction_rounds: u32,
    /// Seed of block orders and intervals
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Maximum run-queue wait of a valid block, in per cent of its window [default: 1; where connections end 3, where each request has one 6]
    #[arg(long)]
    pub(crate) wait_percent: Option<f64>,
}

/// Everything that all measurements of a run share.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) programs: &'a OurPrograms,
    pub(crate) folder: &'a RunFolder,
    pub(crate) settings: RunSettings,
    /// Rounds that need not be measured again.
    pub(crate) journal: Option<&'a Journal>,
}

impl Bench<'_> {
    /// Runs a round, unless a journal has it.
    pub(crate) fn round(&self, name: &str, run: impl FnOnce() -> MeasuredRound) -> MeasuredRound {
        match self.journal {
            Some(journal) => journal.round(name, run),
            None => run(),
        }
    }
}

/// A server, what it serves, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerSetup<'a> {
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
    pub(crate) expected: ExpectedResponse,
    /// Its command line.
    pub(crate) line: String,
}

/// Figures of one round, by name.
pub(crate) type RoundFigures = BTreeMap<&'static str, f64>;

/// One round of a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct MeasuredRound {
    /// Reasons for which it does not count.
    pub(crate) faults: Vec<String>,
    /// Empty if it could not be run.
    #[serde(deserialize_with = "read_figures")]
    pub(crate) figures: RoundFigures,
    /// Readings that the figures rest on.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) details: Value,
}

/// Reads figures back; one that is no number was written as null.
fn read_figures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RoundFigures, D::Error> {
    let figures = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    // Names are never freed: a resumed step reads a few hundred.
    let figure = |(name, value): (String, Option<f64>)| Some((&*name.leak(), value?));
    Ok(figures.into_iter().filter_map(figure).collect())
}

impl From<Result<RoundFigures, String>> for MeasuredRound {
    fn from(result: Result<RoundFigures, String>) -> Self {
        match result {
            Ok(figures) => Self { figures, ..Self::default() },
            Err(reason) => Self { faults: vec![reason], ..Self::default() },
        }
    }
}

impl MeasuredRound {
    /// Returns true if it counts.
    pub(crate) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns a figure, if the round counts.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().filter(|_| self.is_valid())
    }
}

impl ServerSetup<'_> {
    /// Returns the command that starts the server, after writing its configuration into the run's folder.
    pub(crate) fn command(&self) -> Result<Command, String> {
        let Self { bench, spec, scenario, address, .. } = self;
        let [certificate, key] = bench.folder.pair();
        let [public, folder, certificate, key] =
            [&*bench.folder.public(), bench.folder.path(), &certificate, &key]
                .map(|path| path.display().to_string());
        let own = spec.values.iter().map(|(name, value)| (&**name, value.clone()));
        // What a value contains is filled in by those after it.
        let mut values: Vec<(&str, String)> = own.collect();
        values.extend([
            ("sites", spec.sites.map_or_else(String::new, |[sites, routes]| many_sites(sites, routes))),
            ("address", address.to_string()),
            ("ip", address.ip().to_string()),
            ("port", address.port().to_string()),
            ("driver", spec.drivers.concat()),
            ("workers", self.workers.to_string()),
            ("public", public),
            (
                "file",
                bench.folder.served(&scenario.targets().next().unwrap_or_default()).display().to_string(),
            ),
            ("folder", folder),
            ("certificate", certificate),
            ("key", key),
            ("peers", root().join("lab/peers").display().to_string()),
            ("null_bytes", self.null_bytes.to_string()),
            ("pipeline", if scenario.depth > 1 { "--pipeline" } else { "" }.to_owned()),
            ("body", String::from_utf8(scenario.body()).unwrap_or_default()),
        ]);
        let fill = |text: &str, values: &[(&str, String)]| {
            let fill_one =
                |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{name}}}"), value);
            values.iter().fold(text.to_owned(), fill_one)
        };
        if let Some(config) = &spec.config {
            let template = fs::read_to_string(config).map_err(|error| format!("{config}: {error}"))?;
            let name = Path::new(config).file_name().unwrap_or_default().to_string_lossy();
            let written = bench.folder.write(&name, &fill(&template, &values))?;
            values.push(("config", written.display().to_string()));
        }
        spec.installed()?;
        // Split first: a path may contain spaces.
        let arguments = spec.arguments.split_whitespace().map(|word| fill(word, &values));
        let mut command = Command::new(spec.path(bench.programs));
        command.args(arguments.filter(|word| !word.is_empty()));
        command.envs(spec.environment.iter().map(|(name, value)| (name, fill(value, &values))));
        Ok(command)
    }

    /// Starts the server and probes it.
    pub(crate) fn start(&self) -> Result<StartedServer, String> {
        self.start_as(&self.command()?)
    }

    /// Starts the server by another command and probes it.
    pub(crate) fn start_as(&self, command: &Command) -> Result<StartedServer, String> {
        let log = self.bench.folder.path().join("server.log");
        let process = ServerProcess::start(command, self.address, &log)?;
        let response = self.probe()?;
        let (bytes, expected) = (length(&response), ExpectedResponse::like(&response, "GET"));
        let mut server = StartedServer { process, bytes, expected, line: format!("{command:?}") };
        server.process.find_processes();
        Ok(server)
    }

    /// Starts the server, probes it, and sends it a load for a moment.
    pub(crate) fn start_warm(&self) -> Result<StartedServer, String> {
        let mut server = self.start()?;
        let millis = self.scenario.warm_up_ms().max(self.spec.warm_up_ms);
        let load = Load { millis, ..self.load(&server.expected, 0) };
        let connections = load.connections.min(WARM_UP_CONNECTIONS_MAX);
        // In another order than in the window, so that a cache holds no more than at any other time.
        let mut load =
            Load { connections, pacing: Pacing::Closed, latencies: false, seed: load.seed + 1, ..load };
        if !self.spec.is_null() {
            // Every byte is compared here, where the client's own CPU time doesn't matter.
            let content = FileContent::of(&self.scenario.body());
            load.requests.iter_mut().for_each(|request| request.expected.body = Some(content.clone()));
        }
        let counts = self.run_load(&load)?;
        match counts.wrong_responses() + counts.socket_errors() {
            0 if counts.responses > 0 => {}
            0 => return Err("warm-up: no response".to_owned()),
            wrong => {
                return Err(format!("warm-up: {wrong} errors in {} responses: {counts:?}", counts.responses));
            }
        }
        server.process.find_processes();
        // The validators of a large file are others once the server has read it.
        let response = self.probe()?;
        (server.bytes, server.expected) = (length(&response), ExpectedResponse::like(&response, "GET"));
        Ok(server)
    }

    /// Sends one request, whose response must be right to the byte; of a null server only the length is known.
    pub(crate) fn probe(&self) -> Result<Response, String> {
        let response = exchange(
            self.address,
            self.scenario.tls(),
            self.scenario.is_http2(),
            self.scenario.request().as_bytes(),
            "GET",
        )?;
        let (null_bytes, body) = (self.null_bytes, self.scenario.body());
        match (response.status(), length(&response)) {
            (200, bytes) if self.spec.is_null() && bytes == null_bytes => Ok(response),
            (200, bytes) if self.spec.is_null() => Err(format!("probe: {bytes} bytes, not {null_bytes}")),
            (200, _) if response.body == body => self.spec.check_headers(&response.head).map(|()| response),
            (200, _) if response.body.len() == body.len() => Err("probe: the body differs".to_owned()),
            (200, _) => Err(format!(
                "probe: a body of {} bytes, not the {} expected",
                response.body.len(),
                body.len()
            )),
            (status, _) => Err(format!("probe: status {status}")),
        }
    }

    /// Returns the scenario's load. Its connections end before the server would end them.
    pub(crate) fn load(&self, expected: &ExpectedResponse, seconds: u32) -> Load {
        let mut load = self.scenario.load(self.address, expected, u64::from(seconds) * 1000);
        if let (0, Some(limit)) = (load.requests_per_connection, self.spec.requests_max) {
            load.requests_per_connection = ((limit - 1) / load.depth * load.depth).max(1);
        }
        load
    }

    /// Returns the command that runs our own client with a load.
    pub(crate) fn own_client(&self, load: &Load) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let load = serde_json::to_string(load).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(OWN_CLIENT).arg(self.bench.folder.write("load.json", &load)?);
        Ok(command)
    }

    /// Runs our own client on its core.
    pub(crate) fn run_load(&self, load: &Load) -> Result<LoadCounts, String> {
        run_client(&self.own_client(load)?)
    }
}

/// Returns the configuration of so many sites over the served folder, each with a host and so many routes.
fn many_sites(sites: u32, routes: u32) -> String {
    let routes: String =
        (0..routes).map(|route| format!("[[site.route]]\npath = \"/part-{route}/*\"\n")).collect();
    let site = |site| {
        format!("\n[[site]]\nhosts = [\"site-{site:04}.example.org\"]\nroot = \"{{public}}\"\n{routes}")
    };
    (0..sites).map(site).collect()
}

/// Runs a client to its end, on its core.
pub(crate) fn run_client(client: &Command) -> Result<LoadCounts, String> {
    let printed = process::output(on_core(CLIENT_CORE, client))?;
    LoadCounts::parse(&printed).ok_or_else(|| format!("the client printed no counts: {printed:?}"))
}

/// Sends one request on a connection of its own and returns the response, interim ones (`1xx`) excepted.
pub(crate) fn exchange(
    address: SocketAddr,
    tls: Option<Handshakes>,
    is_http2: bool,
    request: &[u8],
    method: &str,
) -> Result<Response, String> {
    let received = match tls {
        None => testkit::Client::connect(address).and_then(|client| exchange_on(client, request, method)),
        Some(handshakes) => ClientTls::new(handshakes, is_http2)
            .and_then(|tls| tls.connect(address))
            .map_err(testkit::Error::from)
            .and_then(|stream| match is_http2 {
                true => exchange_on(testkit::Client::new(TextStream::new(stream)), request, method),
                false => exchange_on(testkit::Client::new(stream), request, method),
            }),
    };
    received.map_err(|error| format!("{address}: {error}"))
}

fn exchange_on<S: Read + Write>(
    mut client: testkit::Client<S>,
    request: &[u8],
    method: &str,
) -> Result<Response, testkit::Error> {
    client.accept_http10();
    // One write: null servers respond to whatever they receive.
    client.send(request)?;
    loop {
        let response = client.response_to(method)?;
        if response.status() >= 200 {
            return Ok(response);
        }
    }
}

/// Returns the length of a whole response with a `Content-Length`.
pub(crate) fn length(response: &Response) -> u64 {
    (response.head.text().len() + response.body.len()) as u64
}
