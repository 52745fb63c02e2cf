//! User instructions of a request, counted by valgrind's callgrind: the same on every machine, but for the program's own dice.

use std::fs;
use std::time::Duration;

use super::rounds::{self, Ask};
use super::{Sites, Stage};
use crate::process::{Launch, Server, free_address};

/// Requests of the two runs. The first also pays for the start and for all that is done once.
const REQUESTS: [u32; 2] = [2_048, 10_240];
/// How long a server may take to start and to end, being counted: 100,000 routes are many.
const PATIENCE: Duration = Duration::from_secs(300);
const VALGRIND: &str = "valgrind";

/// How many instructions a request more costs.
pub(super) fn per_request(stage: &Stage<'_>, sites: Sites, ask: Ask) -> Result<f64, String> {
    let [few, many] = REQUESTS;
    let (base, all) = (total(stage, sites, ask, few)?, total(stage, sites, ask, many)?);
    Ok((all as f64 - base as f64) / f64::from(many - few))
}

/// Instructions of a server from its start to its end, with so many requests.
fn total(stage: &Stage<'_>, sites: Sites, ask: Ask, requests: u32) -> Result<u64, String> {
    let address = free_address(&mut 0)?;
    // The total of an earlier run must not stand for one that never came.
    let counted = stage.site.write("callgrind.out", "")?;
    let launch = under(&stage.launch(sites, address)?, &counted.display().to_string());
    let log = stage.site.folder().join("valgrind.log");
    let mut server = Server::start_within(PATIENCE, &launch, address, &log)?;
    let sent = rounds::send(address, sites, ask, requests);
    server.end_within(PATIENCE);
    sent?;
    let text = fs::read_to_string(&counted).map_err(|error| format!("{}: {error}", counted.display()))?;
    parse_total(&text).ok_or_else(|| format!("{} has no total", counted.display()))
}

fn under(launch: &Launch, out: &str) -> Launch {
    let own = ["--tool=callgrind".to_owned(), format!("--callgrind-out-file={out}")];
    let program = std::iter::once(launch.program.display().to_string());
    Launch {
        program: VALGRIND.into(),
        arguments: own.into_iter().chain(program).chain(launch.arguments.iter().cloned()).collect(),
        environment: launch.environment.clone(),
    }
}

/// The number of instructions in a file of callgrind's.
pub fn parse_total(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}
