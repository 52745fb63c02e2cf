//! What the server itself has counted, against what `wrk` did.

use super::phase::{self, PHASES};
use crate::harness::counters;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// Connections beside those of the phases: the one that saw the server's start, two probes, and in each phase the bystander and the
/// one by which `wrk` looks whether anybody is there.
const CONNECTIONS_BESIDE: u64 = 3 + 2 * PHASES.len() as u64;

/// Ends the server and compares its counters with `answered`, the answers that its clients have read.
pub(super) fn report_and_stop(server: Server, answered: u64, report: &mut Report) -> Outcome<()> {
    let log = server.log().to_path_buf();
    server.stop(report)?;
    let Some(counted) = counters::in_all(&log) else {
        report.check("server's own counters", "not told", "a line at its end", false);
        return Ok(());
    };
    // Each connection may have one request whose answer nobody waited for.
    let most = answered + phase::connections_in_all();
    let same = (answered..=most).contains(&counted.requests);
    report.check("server's count of requests", counted.requests, format!("{answered} to {most}"), same);
    // When its time is over, wrk closes in the middle of what it sends; the server refuses such a part with 400 to nobody.
    let cut_short = counted.requests.saturating_sub(counted.answers_2xx);
    let right = counted.answers_2xx >= answered && counted.answers_5xx == 0;
    let shown = format!("{}, and {cut_short} cut short by wrk's end", counted.answers_2xx);
    report.check("server's count of 2xx", shown, format!(">= {answered}, no 5xx"), right);
    // One more would be one that was lost and made anew.
    let connections = phase::connections_in_all() + CONNECTIONS_BESIDE;
    report.equal("server's count of connections", counted.connections, connections);
    report.equal("server's count of open connections", counted.open, 0);
    report.note("limits that the server has reached", counted.limits.as_str());
    let faults = if counted.faults.is_empty() { "none" } else { &counted.faults };
    report.check("faults that the server has counted", faults, "none", faults == "none");
    Ok(())
}
