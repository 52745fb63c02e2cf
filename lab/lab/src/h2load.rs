//! h2load as a second client: if its figure and our client's differ, one of the two clients is at fault.

use std::process::Command;

use crate::bench::{RoundFigures, ServerSetup};
use crate::process::{self, CLIENT_CORE, CpuReading, on_core};
use crate::scenario::Scenario;

/// Requests of a round, fewer of long files.
const REQUESTS: u32 = 100_000;
const BYTES_MAX: u32 = 2 << 30;
/// So many times those in flight at once, at least: start and end of a round weigh little then.
const FLIGHTS_MIN: u32 = 40;
/// Windows as bits, those of our own client.
const WINDOW_BITS: u32 = 24;

/// Returns the server's CPU time for each response.
pub(crate) fn run(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let command = command(setup)?;
    let server = setup.start_warm()?.process;
    let before = CpuReading::of(server.ids())?;
    let printed = process::output(on_core(CLIENT_CORE, &command))?;
    let spent = CpuReading::of(server.ids())?.since(before, setup.spec.pool)?;
    let responses = responses(&printed)?;
    Ok([("cpu_us", spent.cpu_ns as f64 / f64::from(responses) / 1e3)].into())
}

/// Returns the command, or an error for what h2load can't do.
fn command(setup: &ServerSetup<'_>) -> Result<Command, String> {
    let Scenario { name, connections, depth, .. } = setup.scenario;
    let is_simple = *setup.scenario
        == Scenario {
            rate: None,
            post: false,
            varied: false,
            files: 0,
            requests_per_connection: 0,
            resumes: false,
            beside: None,
            ..setup.scenario.clone()
        };
    if !is_simple {
        return Err(format!(
            "{name}: h2load sends one request in a closed loop on connections that are kept"
        ));
    }
    let scheme = if setup.scenario.tls().is_some() { "https" } else { "http" };
    let in_flight = connections * depth;
    let requests = REQUESTS.min(BYTES_MAX / (setup.scenario.file_bytes as u32).max(1));
    let requests = requests.div_ceil(in_flight).max(FLIGHTS_MIN) * in_flight;
    let mut command = Command::new("h2load");
    command.args((!setup.scenario.is_http2()).then_some("--h1"));
    for (option, value) in [
        ("--clients", *connections),
        ("--max-concurrent-streams", *depth),
        ("--requests", requests),
        ("--window-bits", WINDOW_BITS),
        ("--connection-window-bits", WINDOW_BITS),
    ] {
        command.arg(format!("{option}={value}"));
    }
    let target = setup.scenario.targets().next().unwrap_or_default();
    command.arg(format!("{scheme}://{}{target}", setup.address));
    Ok(command)
}

/// Parses the number of responses; one without success is an error.
fn responses(printed: &str) -> Result<u32, String> {
    let counts = printed.lines().find_map(|line| line.strip_prefix("status codes: ")).unwrap_or_default();
    let mut counts = counts.split(", ").map(|count| count.split(' ').next().and_then(|it| it.parse().ok()));
    let [succeeded, others @ ..] = [counts.next(), counts.next(), counts.next(), counts.next()];
    let total =
        printed.lines().find_map(|line| line.strip_prefix("requests: ")?.split(' ').next()?.parse().ok());
    match succeeded.flatten() {
        Some(count @ 1..) if others == [Some(Some(0)); 3] && total == Some(count) => Ok(count),
        _ => Err(format!("h2load: not all requests succeeded: {printed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_responses_only_if_all_succeeded() {
        let printed = |codes: &str| {
            format!("requests: 9 total, 9 started, 9 done, 9 succeeded\nstatus codes: {codes}\n")
        };
        assert_eq!(responses(&printed("9 2xx, 0 3xx, 0 4xx, 0 5xx")), Ok(9));
        for wrong in ["8 2xx, 0 3xx, 1 4xx, 0 5xx", "8 2xx, 0 3xx, 0 4xx, 0 5xx", "", "9 2xx"] {
            assert!(responses(&printed(wrong)).is_err(), "{wrong}");
        }
    }
}
