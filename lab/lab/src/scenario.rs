//! Loads as data (`scenarios.toml`): what is requested, on how many connections, and when.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::client::{CheckedRequest, ExpectedResponse, Handshakes, Load, LoadOptions, Pacing};
use crate::file_set::FileSet;

/// Number of varied paths.
pub(crate) const VARIED_PATHS: usize = 64;
/// Distance between successive varied paths: without a common divisor with their number, so that all are visited.
const STRIDE: usize = 7;
pub(crate) const PLAINTEXT: &str = "Hello, World!";
/// Larger files are sent with `sendfile`.
const SENDFILE_BYTES_MIN: usize = 64 * 1024;
/// Connections where a scenario doesn't say.
const CONNECTIONS: u32 = 64;
/// Load before a window, in ms, by our own client, which checks every response; with a set of files long enough to ask for most.
const WARM_UP_MS: u64 = 300;
const WARM_UP_SET_MS: u64 = 2_000;

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let mut table: BTreeMap<String, Vec<Scenario>> =
        toml::from_str(include_str!("../scenarios.toml")).expect("a test parses it");
    let mut scenarios = table.remove("scenarios").expect("a test parses it");
    for scenario in &mut scenarios {
        scenario.depth = scenario.depth.max(1);
        if scenario.connections == 0 {
            scenario.connections = CONNECTIONS;
        }
        if scenario.body.is_empty() {
            PLAINTEXT.clone_into(&mut scenario.body);
        }
    }
    scenarios
});

/// Kind of program that responds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResponseSource {
    #[default]
    Text,
    Items,
    Json,
    File,
    TlsFile,
    Http2File,
    Kinds,
    Routes,
}

impl ResponseSource {
    pub(crate) fn is_file(self) -> bool {
        matches!(self, Self::File | Self::TlsFile | Self::Http2File)
    }
}

/// One load; `scenarios.toml` describes the fields.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) source: ResponseSource,
    pub(crate) path: String,
    pub(crate) file_bytes: usize,
    pub(crate) files: u32,
    pub(crate) hot_percent: u32,
    /// Text of a response that is no file.
    pub(crate) body: String,
    pub(crate) post: bool,
    pub(crate) connections: u32,
    pub(crate) depth: u32,
    /// 0 is never.
    pub(crate) requests_per_connection: u32,
    pub(crate) resumes: bool,
    pub(crate) varied: bool,
    pub(crate) rate: Option<u32>,
    pub(crate) receive_buffer_bytes: Option<u32>,
    pub(crate) latencies: bool,
    pub(crate) ready_min: Option<f64>,
    pub(crate) congestion_control: Option<String>,
    pub(crate) beside: Option<String>,
}

pub(crate) fn all() -> &'static [Scenario] {
    &SCENARIOS
}

/// Finds the scenario of this name.
pub(crate) fn find(name: &str) -> Result<&'static Scenario, String> {
    all().iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|scenario| &*scenario.name).collect();
        format!("no scenario `{name}`\nhelp: the scenarios are {}", names.join(", "))
    })
}

impl Scenario {
    pub(crate) fn has_latencies(&self) -> bool {
        self.latencies || self.rate.is_some() || self.ready_min.is_some()
    }

    /// Returns the set of files that it asks for in random order.
    pub(crate) fn file_set(&self) -> Option<FileSet> {
        let (count, bytes) = (self.files, self.file_bytes as u32);
        (count > 0).then(|| FileSet { path: self.path.clone(), count, bytes })
    }

    /// Returns the handshakes of its connections, if they are encrypted.
    pub(crate) fn tls(&self) -> Option<Handshakes> {
        let handshakes = if self.resumes { Handshakes::Resumed } else { Handshakes::Full };
        matches!(self.source, ResponseSource::TlsFile | ResponseSource::Http2File).then_some(handshakes)
    }

    /// Returns true if its requests are streams of HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.source == ResponseSource::Http2File
    }

    pub(crate) fn warm_up_ms(&self) -> u64 {
        if self.files > 0 && self.hot_percent < 100 { WARM_UP_SET_MS } else { WARM_UP_MS }
    }

    /// Returns the age in seconds that its files must have: our server copies a freshly changed large one instead of using
    /// `sendfile`, and the validators of any new file are longer.
    pub(crate) fn settled_s(&self) -> u64 {
        match self.source.is_file() {
            true if self.file_bytes > SENDFILE_BYTES_MIN => 11,
            true => 4,
            false => 0,
        }
    }

    /// Returns the targets in the order in which a connection requests them; of a set the first file alone.
    pub(crate) fn targets(&self) -> impl Iterator<Item = String> {
        let numbers = if self.varied { VARIED_PATHS } else { 1 };
        let target = move |at: usize| self.path.replace("NN", &format!("{:02}", at * STRIDE % VARIED_PATHS));
        (0..numbers).map(move |at| self.file_set().map_or_else(|| target(at), |set| set.target(0)))
    }

    /// Returns the expected body: every server must send just this. Null servers have a filler of their own.
    pub(crate) fn body(&self) -> Vec<u8> {
        match self.source.is_file() {
            true => self.file_set().map_or_else(|| file_bytes(self.file_bytes), |set| set.content(0).whole()),
            false => self.body.clone().into_bytes(),
        }
    }

    /// Returns the request to the first target.
    pub(crate) fn request(&self) -> String {
        self.requests().next().unwrap_or_default()
    }

    fn requests(&self) -> impl Iterator<Item = String> {
        let (method, body) = match self.post {
            true => ("POST", format!("Content-Length: {}\r\n\r\n{PLAINTEXT}", PLAINTEXT.len())),
            false => ("GET", "\r\n".to_owned()),
        };
        self.targets().map(move |target| format!("{method} {target} HTTP/1.1\r\nHost: lab\r\n{body}"))
    }

    /// Returns the load for our own client.
    pub(crate) fn load(&self, address: SocketAddr, expected: &ExpectedResponse, millis: u64) -> Load {
        let checked = |request| CheckedRequest { request, expected: expected.clone() };
        Load {
            address,
            tls: self.tls(),
            http2: self.is_http2(),
            beside: self.beside.clone(),
            millis,
            responses_max: None,
            connections: self.connections,
            depth: self.depth,
            requests_per_connection: self.requests_per_connection,
            pacing: self.rate.map_or(Pacing::Closed, Pacing::Rate),
            receive_buffer_bytes: self.receive_buffer_bytes,
            latencies: self.has_latencies(),
            downloads: Vec::new(),
            own_headers: self.varied,
            requests: self.requests().map(checked).collect(),
            files: self.file_set(),
            hot_percent: self.hot_percent,
            seed: 0,
            options: LoadOptions::default(),
        }
    }
}

/// Returns a file's content. It is not constant, so that a wrong offset shows.
pub(crate) fn file_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + ((at ^ (at >> 8)) % 26) as u8).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_scenario_can_be_sent() {
        let names: BTreeSet<&str> = all().iter().map(|scenario| &*scenario.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(find("nothing").is_err_and(|error| error.contains("plaintext-varied")));
        let mut lengths = BTreeMap::new();
        for scenario in all() {
            let name = &*scenario.name;
            assert_eq!(find(name), Ok(scenario));
            assert_eq!(scenario.source.is_file(), scenario.file_bytes > 0, "{name}");
            let targets: BTreeSet<String> = scenario.targets().collect();
            assert_eq!(targets.len(), if scenario.path.contains("NN") { 64 } else { 1 }, "{name}");
            assert!(!(scenario.is_http2() && (scenario.resumes || scenario.post)), "{name} can't be sent");
            assert!(scenario.beside.is_none() || scenario.is_http2(), "{name} has no streams");
            let ends = scenario.requests_per_connection;
            assert!(ends == 0 || ends % scenario.depth == 0, "{name} ends within a batch");
            let length = *lengths.entry(&scenario.path).or_insert(scenario.body().len());
            assert!(length == scenario.body().len() || scenario.varied, "{name}: two lengths of one file");
            assert!(
                scenario.source != ResponseSource::Kinds || scenario.path.len() == "/plaintext".len(),
                "{name}"
            );
        }
    }
}
