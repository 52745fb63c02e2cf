//! What the servers say of the soak themselves, against what their clients have seen.

use super::kind::{Kind, index};
use super::site::Site;
use super::tally::Tally;
use crate::harness::counters;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// A server that is left alone has no open connection, and so no slot in use.
pub(super) fn report_open(report: &mut Report, which: &str, server: &Server) {
    let what = format!("{which}: open connections by its own count");
    match counters::so_far(server) {
        Some(counted) => report.equal(&what, counted.open, 0),
        None => report.check(&what, "not told", "a line at SIGUSR1", false),
    }
}

/// Ends both servers, and compares their counters together with what all clients have counted.
pub(super) fn report_and_stop(site: Site, all: &Tally, report: &mut Report) -> Outcome<()> {
    let learnt = site.learnt();
    let servers = site.servers().len() as u64;
    let logs = site.servers().map(|(which, server)| (which, server.log().to_path_buf()));
    let Site { program, example, .. } = site;
    program.stop(report)?;
    example.stop(report)?;
    let (mut requests, mut connections) = (0, 0);
    for (which, log) in logs {
        let Some(counted) = counters::in_all(&log) else {
            report.check(&format!("{which}: own counters"), "not told", "a line at its end", false);
            return Ok(());
        };
        let limits = if counted.limits.is_empty() { "none" } else { &counted.limits };
        report.note(&format!("{which}: limits reached"), limits);
        let faults = if counted.faults.is_empty() { "none" } else { &counted.faults };
        report.check(&format!("{which}: faults"), faults, "none", faults == "none");
        requests += counted.requests;
        connections += counted.connections;
    }
    // Whose answer was given up may have been answered or not; a part of a request, before the client's end, may have got a 400.
    let parts = [Kind::PartOfHead, Kind::PartOfBody, Kind::ResetAtOnce].map(|kind| all.kinds[index(kind)]);
    let least = all.right + learnt;
    let most = least + all.given_up + parts.iter().sum::<u64>();
    let right = (least..=most).contains(&requests);
    report.check("requests by the servers' own count", requests, format!("{least} to {most}"), right);
    // The start looks at each server by a connection; what is reset at once may never be accepted.
    let most = all.connections + learnt + servers;
    let least = most - all.kinds[index(Kind::ResetAtOnce)];
    let right = (least..=most).contains(&connections);
    report.check("connections by the servers' own count", connections, format!("{least} to {most}"), right);
    Ok(())
}
