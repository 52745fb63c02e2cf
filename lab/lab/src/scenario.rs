//! What is asked of the servers, as data.

use crate::validity::{WAIT_PERCENT_MAX, WAIT_PERCENT_MAX_CHURN};

/// Where the answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A handler with a constant text.
    Plaintext,
    /// A handler with a small JSON text.
    Json,
    /// A file of the site.
    File,
}

/// Who sends the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// wrk: the same request on every connection.
    Wrk,
    /// Our own client: what wrk cannot do.
    Own,
}

/// One load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// As typed after `--scenario`.
    pub name: &'static str,
    /// What it stands for.
    pub about: &'static str,
    /// Where the answer comes from.
    pub source: Source,
    /// The target; with `varied`, `NN` in it runs from 00 to 63.
    pub path: &'static str,
    /// Length of the body expected.
    pub body_bytes: usize,
    /// Connections held at once.
    pub connections: u32,
    /// Requests sent before their answers are awaited.
    pub depth: u32,
    /// Requests after which the client closes and connects anew; 0 is never.
    pub requests_per_connection: u32,
    /// Whether paths, cookies and the order of header fields differ between connections and requests.
    pub varied: bool,
    /// What the client asks for as the receive buffer of a connection, before it connects: its window stays within that. None: the
    /// kernel sizes it as the connection goes on.
    pub receive_buffer_bytes: Option<u32>,
}

/// Paths of the varied scenarios.
pub const VARIED_PATHS: u32 = 64;
/// Files with longer bodies have to have been left alone before they are measured: until then a server may copy what it sends otherwise
/// from the file's own pages.
const LENT_BYTES_MIN: usize = 64 * 1024;
/// The text of plaintext answers.
pub const PLAINTEXT: &str = "Hello, World!";
/// The text of JSON answers.
pub const JSON: &str = r#"{"message":"Hello, World!"}"#;

const TEXT: Scenario = Scenario {
    name: "plaintext",
    about: "13 bytes from a handler",
    source: Source::Plaintext,
    path: "/plaintext",
    body_bytes: PLAINTEXT.len(),
    connections: 64,
    depth: 1,
    requests_per_connection: 0,
    varied: false,
    receive_buffer_bytes: None,
};
const FILE: Scenario = Scenario {
    name: "1k",
    about: "a file of 1 KiB",
    source: Source::File,
    path: "/1k.bin",
    body_bytes: 1024,
    ..TEXT
};
const LARGE: Scenario = Scenario { path: "/1m.bin", body_bytes: 1_048_576, ..FILE };

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    TEXT,
    Scenario { name: "plaintext-x16", about: "sixteen requests at once", depth: 16, ..TEXT },
    Scenario {
        name: "plaintext-churn",
        about: "ten requests a connection",
        requests_per_connection: 10,
        ..TEXT
    },
    Scenario { name: "plaintext-500", about: "500 connections", connections: 500, ..TEXT },
    Scenario { name: "plaintext-10000", about: "10,000 connections", connections: 10_000, ..TEXT },
    Scenario {
        name: "plaintext-varied",
        about: "64 paths, cookies and field order of their own per connection",
        path: "/item/NN",
        varied: true,
        ..TEXT
    },
    Scenario {
        name: "json",
        about: "27 bytes of JSON from a handler",
        source: Source::Json,
        path: "/json",
        body_bytes: JSON.len(),
        ..TEXT
    },
    FILE,
    Scenario { name: "1k-x16", about: "sixteen requests at once", depth: 16, ..FILE },
    Scenario { name: "1k-churn", about: "ten requests a connection", requests_per_connection: 10, ..FILE },
    Scenario {
        name: "1k-varied",
        about: "64 files, cookies and field order of their own per connection",
        path: "/item/NN",
        varied: true,
        ..FILE
    },
    Scenario { name: "1k-500", about: "500 connections", connections: 500, ..FILE },
    Scenario { name: "1k-10000", about: "10,000 connections", connections: 10_000, ..FILE },
    Scenario { name: "6.4k", about: "a page of 6.4 KB", path: "/6.4k.bin", body_bytes: 6_400, ..FILE },
    Scenario { name: "100k", about: "a file of 100 KiB", path: "/100k.bin", body_bytes: 102_400, ..FILE },
    Scenario {
        name: "1m",
        about: "a file of 1 MiB, wide windows",
        receive_buffer_bytes: Some(4_000_000),
        ..LARGE
    },
    Scenario {
        name: "1m-narrow",
        about: "a file of 1 MiB, narrow windows",
        receive_buffer_bytes: Some(65_536),
        ..LARGE
    },
    Scenario { name: "1m-auto", about: "a file of 1 MiB, windows as the kernel sizes them", ..LARGE },
];

/// The scenario of this name.
///
/// # Errors
/// Names all there are.
pub fn find(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("no scenario {name:?}; there are {}", names.join(", "))
    })
}

impl Scenario {
    /// How long the server may wait for its core, in per cent of the window, before the block is invalid.
    ///
    /// Where connections end, the kernel's own threads free them on the server's core, about one per cent of the time and
    /// for every server alike: that is part of the load and not somebody else's.
    pub fn wait_percent_max(&self) -> f64 {
        if self.requests_per_connection > 0 { WAIT_PERCENT_MAX_CHURN } else { WAIT_PERCENT_MAX }
    }

    /// Who can send it: wrk, unless connections end or differ, or their receive buffers are given.
    pub fn generator(&self) -> Generator {
        let own = self.varied || self.requests_per_connection > 0 || self.receive_buffer_bytes.is_some();
        if own { Generator::Own } else { Generator::Wrk }
    }

    /// Whether its files have to have been left alone for a while before they are measured.
    pub fn has_to_settle(&self) -> bool {
        self.source == Source::File && self.body_bytes > LENT_BYTES_MIN
    }

    /// The target of one of the paths.
    pub fn target(&self, number: u32) -> String {
        self.path.replace("NN", &format!("{:02}", number % VARIED_PATHS))
    }

    /// The body expected: every server must send just this. Null servers have a filler of their own.
    pub fn body(&self) -> Vec<u8> {
        match self.source {
            Source::Plaintext => PLAINTEXT.into(),
            Source::Json => JSON.into(),
            Source::File => file_bytes(self.body_bytes),
        }
    }

    /// How many bytes of unfinished answers a client may hold when its time is up.
    pub fn in_flight_bytes_max(&self, answer_bytes: u64) -> u64 {
        u64::from(self.connections) * u64::from(self.depth) * answer_bytes
    }
}

/// The content of a file of this length: not constant, so that a wrong offset shows.
pub fn file_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + ((at ^ (at >> 8)) % 26) as u8).collect()
}
