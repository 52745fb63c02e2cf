//! The load generator wrk, and the script that makes it print exact counts.

use std::net::SocketAddr;
use std::path::Path;

use crate::scenario::Scenario;

/// wrk gives up on an answer after so long, in seconds, and counts a timeout.
const TIMEOUT_S: u32 = 8;

/// The script: batches if the scenario wants them, and the counts in our own line, for wrk rounds what it prints.
pub fn script(scenario: &Scenario) -> String {
    let counts = "done = function(summary, latency, requests)\n  \
        local errors = summary.errors\n  \
        io.write(string.format(\"lab-tally responses=%.0f bytes=%.0f duration_us=%.0f connect_errors=%.0f \
        read_errors=%.0f write_errors=%.0f timeouts=%.0f status_errors=%.0f receive_buffer_bytes=%.0f\\n\", summary.requests, summary.bytes, \
        summary.duration, errors.connect, errors.read, errors.write, errors.timeout, errors.status, 0))\nend\n";
    if scenario.depth == 1 {
        return counts.to_owned();
    }
    let batch = format!(
        "local batch\ninit = function(args)\n  local one = wrk.format(\"GET\", \"{}\")\n  \
         batch = string.rep(one, {})\nend\nrequest = function() return batch end\n",
        scenario.path, scenario.depth
    );
    batch + counts
}

/// The arguments of a run.
pub fn arguments(scenario: &Scenario, script: &Path, address: SocketAddr, seconds: u32) -> Vec<String> {
    vec![
        "-t1".to_owned(),
        format!("-c{}", scenario.connections),
        format!("-d{seconds}s"),
        "--timeout".to_owned(),
        format!("{TIMEOUT_S}s"),
        "-s".to_owned(),
        script.display().to_string(),
        format!("http://{address}{}", scenario.path),
    ]
}
