//! User instructions of a request, counted by valgrind's callgrind: the same on every machine, but for the program's own dice, and for how many
//! requests its turns happen to have.

pub mod heap;
pub mod rounds;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::process::{Launch, Server, free_address};
use crate::site::Site;

/// Requests of the two runs. The first also pays for the start and for all that is done once.
const REQUESTS: [u32; 2] = [2_048, 10_240];
/// How long a server may take to start and to end, being counted: 100,000 routes are many.
const PATIENCE: Duration = Duration::from_secs(300);
const VALGRIND: &str = "valgrind";

/// A server and what it is asked.
pub struct Subject<'a> {
    /// How it is started to listen at an address.
    pub launch: &'a dyn Fn(SocketAddr) -> Result<Launch, String>,
    /// Sends it so many requests, a multiple of [`rounds::CONNECTIONS`], and looks at each answer.
    pub send: &'a dyn Fn(SocketAddr, u32) -> Result<(), String>,
    /// Where the counts and what it says are written.
    pub site: &'a Site,
}

/// How many instructions a request more costs.
///
/// # Errors
/// valgrind is missing, the server doesn't start, or an answer isn't what was asked for.
pub fn per_request(subject: &Subject<'_>) -> Result<f64, String> {
    difference(|requests| total(subject, requests))
}

/// What a request more adds to a count of a whole run.
fn difference(total: impl Fn(u32) -> Result<u64, String>) -> Result<f64, String> {
    let [few, many] = REQUESTS;
    let (base, all) = (total(few)?, total(many)?);
    Ok((all as f64 - base as f64) / f64::from(many - few))
}

/// Instructions of a server from its start to its end, with so many requests.
fn total(subject: &Subject<'_>, requests: u32) -> Result<u64, String> {
    // The total of an earlier run must not stand for one that never came.
    let counted = subject.site.write("callgrind.out", "")?;
    let tool = ["--tool=callgrind".to_owned(), format!("--callgrind-out-file={}", counted.display())];
    run_under(subject, &tool, requests)?;
    let text = fs::read_to_string(&counted).map_err(|error| format!("{}: {error}", counted.display()))?;
    parse_total(&text).ok_or_else(|| format!("{} has no total", counted.display()))
}

/// Runs a server under one of valgrind's tools from its start to its end; gives the file with what both have said.
fn run_under(subject: &Subject<'_>, tool: &[String], requests: u32) -> Result<PathBuf, String> {
    let address = free_address(&mut 0)?;
    let launch = under(&(subject.launch)(address)?, tool);
    let log = subject.site.folder().join("valgrind.log");
    let mut server = Server::start_within(PATIENCE, &launch, address, &log)?;
    let sent = (subject.send)(address, requests);
    server.end_within(PATIENCE);
    sent.map(|()| log)
}

fn under(launch: &Launch, tool: &[String]) -> Launch {
    let program = std::iter::once(launch.program.display().to_string());
    Launch {
        program: VALGRIND.into(),
        arguments: tool.iter().cloned().chain(program).chain(launch.arguments.iter().cloned()).collect(),
        environment: launch.environment.clone(),
    }
}

/// The number of instructions in a file of callgrind's.
pub fn parse_total(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_total;

    #[test]
    fn a_total_is_read_where_there_is_one() {
        assert_eq!(parse_total("events: Ir\nfn=main\n1 7\n\ntotals: 48120\n"), Some(48_120));
        assert_eq!(parse_total("events: Ir\n"), None);
        assert_eq!(parse_total("totals: many\n"), None);
    }
}
