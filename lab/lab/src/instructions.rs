//! User instructions per request, counted by valgrind's callgrind: the same on every machine, but for the program's own
//! random numbers.
//!
//! The client sends in rounds, so that every turn of the server has the same number of requests. callgrind doesn't know
//! io_uring: only epoll can be counted.

use std::fs;
use std::time::Duration;

use crate::block::{Order, length};
use crate::client::{self, Load, Pacing};
use crate::folder::Folder;
use crate::process::{Launch, Server, free_address};
use crate::programs::Programs;
use crate::server::Place;
use crate::{scenario, server};

/// Requests of the two runs, in whole rounds. The difference is counted: the start and all that is done once cancel out.
const REQUESTS: [u64; 2] = [2_048, 10_240];
const CONNECTIONS: u32 = 32;
/// Time for a server to respond and to end while it is counted.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Seconds of a count, on average.
pub(crate) const ESTIMATED_S: f64 = 15.0;

/// Counts the instructions of one more request.
pub(crate) fn per_request(
    server: &str,
    scenario: &str,
    folder: &Folder,
    programs: &Programs,
) -> Result<f64, String> {
    let (server, scenario) = (server::find(server)?, scenario::find(scenario)?);
    let count = |requests| -> Result<u64, String> {
        let address = free_address()?;
        let place = Place { programs, folder, address, null_bytes: 150, workers: 1 };
        let order = Order { server, scenario, place, seconds: 1, wait_percent_max: 100.0 };
        total(&order, requests)
    };
    let [few, many] = REQUESTS;
    Ok((count(many)? as f64 - count(few)? as f64) / (many - few) as f64)
}

/// Counts the instructions of a server from its start to its end.
fn total(order: &Order<'_>, requests: u64) -> Result<u64, String> {
    let (server, scenario, Place { address, folder, .. }) = (order.server, order.scenario, order.place);
    // Emptied, so that an earlier total can't pass for a missing one.
    let counted = folder.write("callgrind.out", "")?;
    let launch = server.launch(scenario, &order.place)?;
    let tool = ["--tool=callgrind".to_owned(), format!("--callgrind-out-file={}", counted.display())];
    let program = std::iter::once(launch.program.display().to_string());
    let under = Launch::new("valgrind", tool.into_iter().chain(program).chain(launch.arguments));
    let under = Launch { environment: launch.environment, ..under };
    let mut running = Server::start(&under, address, &folder.path().join("valgrind.log"))?;
    let bytes = length(&order.probe()?);
    let millis = WAIT_MAX.as_millis() as u64;
    let load = Load {
        connections: CONNECTIONS,
        pacing: Pacing::Rounds,
        responses_max: Some(requests),
        latencies: false,
        ..scenario.load(address, bytes, millis)
    };
    let tally = client::run(&load).map_err(|error| format!("client: {error}"))?;
    running.end_within(WAIT_MAX);
    if tally.responses != requests || tally.socket_errors() + tally.status_errors > 0 {
        return Err(format!("{} of {requests} responses; {tally:?}", tally.responses));
    }
    let text = fs::read_to_string(&counted).map_err(|error| format!("{}: {error}", counted.display()))?;
    parse_total(&text).ok_or_else(|| format!("{} has no total", counted.display()))
}

/// Parses the number of instructions in callgrind's file.
fn parse_total(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_total;

    #[test]
    fn parses_the_total() {
        assert_eq!(parse_total("events: Ir\nfn=main\n1 7\n\ntotals: 48120\n"), Some(48_120));
        assert_eq!(parse_total("events: Ir\n"), None);
        assert_eq!(parse_total("totals: many\n"), None);
    }
}
