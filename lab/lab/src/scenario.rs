//! Loads as data: what is requested, on how many connections, and how they are paced.

use std::net::SocketAddr;

use crate::client::{Exchange, Load, Pacing};

/// Origin of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A handler with a constant text.
    Plaintext,
    /// A handler with a small constant JSON text.
    Json,
    /// A file of the site.
    File,
    /// One kind of handler of `crates/shearwater/examples/kinds.rs`.
    Kinds,
}

/// One load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scenario {
    /// Name for `--scenario`.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) source: Source,
    /// Target of the request; with `varied`, `NN` in it runs from 00 to 63.
    pub(crate) path: &'static str,
    pub(crate) body_bytes: usize,
    /// Sends [`PLAINTEXT`] by `POST` instead of a `GET`.
    pub(crate) is_post: bool,
    pub(crate) connections: u32,
    /// Requests sent before their responses are awaited.
    pub(crate) depth: u32,
    /// Requests after which the client closes and reconnects; 0 is never.
    pub(crate) requests_per_connection: u32,
    /// Paths differ between requests, cookies and header order between connections.
    pub(crate) varied: bool,
    /// Requests due per second over all connections; none: each connection sends as soon as it has its response.
    pub(crate) rate: Option<u32>,
    /// Receive buffer requested before connecting, which bounds the window; none: the kernel resizes it.
    pub(crate) receive_buffer_bytes: Option<u32>,
    /// Handlers that must be ready in a turn, on average. Latencies are recorded then, as at a fixed rate.
    pub(crate) ready_min: Option<f64>,
}

/// Number of varied paths.
pub(crate) const VARIED_PATHS: u32 = 64;
pub(crate) const PLAINTEXT: &str = "Hello, World!";
pub(crate) const JSON: &str = r#"{"message":"Hello, World!"}"#;
/// Larger files are sent with `sendfile`.
const SENDFILE_BYTES_MIN: usize = 64 * 1024;

const TEXT: Scenario = Scenario {
    name: "plaintext",
    about: "13 bytes from a handler",
    source: Source::Plaintext,
    path: "/plaintext",
    body_bytes: PLAINTEXT.len(),
    is_post: false,
    connections: 64,
    depth: 1,
    requests_per_connection: 0,
    varied: false,
    rate: None,
    receive_buffer_bytes: None,
    ready_min: None,
};
const FILE: Scenario = file("1k", "a file of 1 KiB", "/1k.bin", 1024);
const PAGE: Scenario = file("6.4k", "a page of 6.4 KB", "/6.4k.bin", 6_400);
const LARGE: Scenario =
    file("1m-auto", "a file of 1 MiB, windows as the kernel sizes them", "/1m.bin", 1_048_576);

const fn file(name: &'static str, about: &'static str, path: &'static str, body_bytes: usize) -> Scenario {
    Scenario { name, about, source: Source::File, path, body_bytes, ..TEXT }
}

const fn kind(name: &'static str, about: &'static str, path: &'static str) -> Scenario {
    Scenario { name, about, source: Source::Kinds, path, ..TEXT }
}

const fn named(name: &'static str, about: &'static str, base: Scenario) -> Scenario {
    Scenario { name, about, ..base }
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    TEXT,
    Scenario { depth: 16, ..named("plaintext-x16", "sixteen requests at once", TEXT) },
    Scenario { requests_per_connection: 10, ..named("plaintext-churn", "ten requests a connection", TEXT) },
    Scenario { connections: 500, ..named("plaintext-500", "500 connections", TEXT) },
    Scenario { connections: 10_000, ..named("plaintext-10000", "10,000 connections", TEXT) },
    Scenario {
        path: "/item/NN",
        varied: true,
        ..named("plaintext-varied", "64 paths, own cookies and order", TEXT)
    },
    Scenario { source: Source::Json, body_bytes: JSON.len(), ..kind("json", "27 bytes of JSON", "/json") },
    FILE,
    Scenario { depth: 16, ..named("1k-x16", "sixteen requests at once", FILE) },
    Scenario { requests_per_connection: 10, ..named("1k-churn", "ten requests a connection", FILE) },
    Scenario {
        path: "/item/NN",
        varied: true,
        ..named("1k-varied", "64 files, own cookies and order", FILE)
    },
    Scenario { connections: 500, ..named("1k-500", "500 connections", FILE) },
    Scenario { connections: 10_000, ..named("1k-10000", "10,000 connections", FILE) },
    Scenario { rate: Some(5_000), ..named("1k-rate", "5,000 requests a second", FILE) },
    PAGE,
    Scenario {
        connections: 10_000,
        rate: Some(20_000),
        ..named("crowd", "6.4 KB, 20,000 requests a second", PAGE)
    },
    file("100k", "a file of 100 KiB", "/100k.bin", 102_400),
    Scenario { receive_buffer_bytes: Some(4_000_000), ..named("1m", "a file of 1 MiB, wide windows", LARGE) },
    Scenario {
        receive_buffer_bytes: Some(65_536),
        ..named("1m-narrow", "a file of 1 MiB, narrow windows", LARGE)
    },
    LARGE,
    kind("kind-plain", "a handler", "/plaintext"),
    kind("kind-fast", "a fast route", "/fast-text"),
    Scenario { body_bytes: JSON.len(), ..kind("kind-json", "JSON by serde", "/json-text") },
    kind("kind-async", "an async handler", "/asynctext"),
    kind("kind-async-yield", "an async handler that yields once", "/asyncturn"),
    kind("kind-coroutine", "a coroutine", "/coroutine"),
    kind("kind-coroutine-yield", "a coroutine that yields once", "/corouturn"),
    Scenario { is_post: true, ..kind("kind-body", "a buffered body", "/post-body") },
    Scenario { is_post: true, ..kind("kind-stream", "a body read by an async handler", "/take-body") },
    Scenario {
        connections: 1_000,
        ready_min: Some(100.0),
        ..kind("order", "handlers that yield 32 times", "/manyturns")
    },
];

/// Finds the scenario of this name.
pub(crate) fn find(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("no scenario `{name}`\nhelp: the scenarios are {}", names.join(", "))
    })
}

impl Scenario {
    /// Returns true if wrk can send it; what it can't, our own client sends.
    pub(crate) fn uses_wrk(&self) -> bool {
        let differs = self.varied || self.is_post || self.requests_per_connection > 0;
        !differs && self.receive_buffer_bytes.is_none() && !self.has_latencies()
    }

    pub(crate) fn has_latencies(&self) -> bool {
        self.rate.is_some() || self.ready_min.is_some()
    }

    /// Returns the age in seconds that its files must have: our server copies a freshly changed large one instead of using
    /// `sendfile`, and the validators of any new file are longer.
    pub(crate) fn settled_s(&self) -> u64 {
        match self.source {
            Source::File if self.body_bytes > SENDFILE_BYTES_MIN => 11,
            Source::File => 4,
            Source::Plaintext | Source::Json | Source::Kinds => 0,
        }
    }

    pub(crate) fn target(&self, number: u32) -> String {
        self.path.replace("NN", &format!("{:02}", number % VARIED_PATHS))
    }

    /// Returns the expected body: every server must send just this. Null servers have a filler of their own.
    pub(crate) fn body(&self) -> Vec<u8> {
        match self.source {
            Source::File => file_bytes(self.body_bytes),
            _ if self.body_bytes == JSON.len() => JSON.into(),
            _ => PLAINTEXT.into(),
        }
    }

    /// Returns the request to the first target.
    pub(crate) fn request(&self) -> String {
        let (target, length) = (self.target(0), PLAINTEXT.len());
        match self.is_post {
            true => {
                format!("POST {target} HTTP/1.1\r\nHost: lab\r\nContent-Length: {length}\r\n\r\n{PLAINTEXT}")
            }
            false => format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n"),
        }
    }

    /// Returns the load for our own client; whole responses have `bytes`.
    pub(crate) fn load(&self, address: SocketAddr, bytes: u64, millis: u64) -> Load {
        Load {
            connections: self.connections,
            depth: self.depth,
            requests_per_connection: self.requests_per_connection,
            pacing: self.rate.map_or(Pacing::Closed, Pacing::Rate),
            receive_buffer_bytes: self.receive_buffer_bytes,
            latencies: self.has_latencies(),
            varied: self.varied,
            ..Load::new(address, millis, vec![Exchange { request: self.request(), status: 200, bytes }])
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
        let names: BTreeSet<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        assert!(find("nothing").is_err_and(|error| error.contains("plaintext-varied")));
        let mut lengths = std::collections::BTreeMap::new();
        for scenario in SCENARIOS {
            let name = scenario.name;
            assert_eq!(find(name), Ok(scenario));
            assert_eq!(scenario.body().len(), scenario.body_bytes, "{name}");
            assert_eq!(scenario.varied, scenario.target(0) != scenario.target(63), "{name}");
            let ends = scenario.requests_per_connection;
            assert!(ends == 0 || ends % scenario.depth == 0, "{name} ends within a batch");
            let length = *lengths.entry(scenario.path).or_insert(scenario.body_bytes);
            assert!(length == scenario.body_bytes || scenario.varied, "{name}: two lengths of one file");
            assert!(scenario.source != Source::Kinds || scenario.path.len() == TEXT.path.len(), "{name}");
        }
    }
}
