//! The four phases: how many threads and connections, for how long, and what is asked for.

/// One run of `wrk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phase {
    /// Its name in the report.
    pub(super) name: &'static str,
    /// Threads of the client.
    pub(super) threads: u64,
    /// Connections of the client.
    pub(super) connections: u64,
    /// How long it sends.
    pub(super) seconds: u64,
    /// An answer that takes longer is an error.
    pub(super) timeout_seconds: u64,
    /// What it sends.
    pub(super) requests: Requests,
}

/// What a phase sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requests {
    /// `GET /`, always the same.
    Plain,
    /// `GET /` with a large header, another one each time.
    Headers,
    /// `POST /` with a large body.
    Payloads,
}

/// All phases, in order.
pub(super) const PHASES: [Phase; 4] = [
    Phase {
        name: "warm-up",
        threads: 8,
        connections: 1_000,
        seconds: 5,
        timeout_seconds: 5,
        requests: Requests::Plain,
    },
    Phase {
        name: "baseline",
        threads: 8,
        connections: 10_000,
        seconds: 10,
        timeout_seconds: 5,
        requests: Requests::Plain,
    },
    Phase {
        name: "headers",
        threads: 4,
        connections: 5_000,
        seconds: 10,
        timeout_seconds: 5,
        requests: Requests::Headers,
    },
    Phase {
        name: "payloads",
        threads: 4,
        connections: 100,
        seconds: 15,
        timeout_seconds: 15,
        requests: Requests::Payloads,
    },
];

/// The end of every script: one line with all figures.
const TALLY: &str = include_str!("../../stress/tally.lua");
const HEADERS: &str = include_str!("../../stress/headers.lua");
const PAYLOADS: &str = include_str!("../../stress/payloads.lua");

/// The shortest large header, bytes: `LEAST` of `headers.lua`.
const HEADER_BYTES_MIN: u64 = 10_000;
/// The longest large header, bytes: `MOST` of `headers.lua`.
const HEADER_BYTES_MAX: u64 = 60_000;
/// The shortest body, bytes: `LEAST` of `payloads.lua`.
const PAYLOAD_BYTES_MIN: u64 = 1_000_000;
/// The longest body, bytes: `MOST` of `payloads.lua`.
const PAYLOAD_BYTES_MAX: u64 = 9_400_000;

impl Phase {
    /// The Lua script.
    pub(super) fn script(&self) -> String {
        let own = match self.requests {
            Requests::Plain => "",
            Requests::Headers => HEADERS,
            Requests::Payloads => PAYLOADS,
        };
        format!("{TALLY}\n{own}")
    }

    /// The bytes that one request carries beyond the plain one: the least and the most, where the script builds requests.
    pub(super) fn load_bytes(&self) -> Option<(u64, u64)> {
        match self.requests {
            Requests::Plain => None,
            Requests::Headers => Some((HEADER_BYTES_MIN, HEADER_BYTES_MAX)),
            Requests::Payloads => Some((PAYLOAD_BYTES_MIN, PAYLOAD_BYTES_MAX)),
        }
    }
}

/// The most connections of one phase.
pub(super) fn connections_max() -> u64 {
    PHASES.iter().map(|phase| phase.connections).max().unwrap_or(0)
}

/// The connections of all phases.
pub(super) fn connections_in_all() -> u64 {
    PHASES.iter().map(|phase| phase.connections).sum()
}

#[cfg(test)]
mod tests {
    use super::{PHASES, Requests};

    /// The figures of this file and of the scripts are the same ones.
    #[test]
    fn the_scripts_send_what_the_phases_say() {
        for phase in PHASES {
            let (script, load) = (phase.script(), phase.load_bytes());
            assert!(script.contains("function done("), "{}", phase.name);
            assert_eq!(script.contains("function request("), phase.requests != Requests::Plain);
            if let Some((least, most)) = load {
                let line = format!("local LEAST, MOST = {least}, {most}\n");
                assert!(script.contains(&line), "{}: {line}", phase.name);
            }
        }
    }
}
