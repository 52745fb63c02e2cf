//! The load generator wrk, and the script that makes it print a [`Tally`](crate::client::Tally).

use std::net::SocketAddr;
use std::path::Path;

use crate::process::Launch;
use crate::scenario::Scenario;

/// Seconds after which wrk counts a response as a timeout.
const TIMEOUT_S: u32 = 8;

/// Prints exact counts as JSON: wrk rounds its own.
const COUNTS: &str = r#"done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"responses":%.0f,"bytes":%.0f,"duration_us":%.0f,"connect_errors":%.0f,"read_errors":%.0f,"write_errors":%.0f,"timeouts":%.0f,"status_errors":%.0f,"receive_buffer_bytes_granted":0}\n',
    summary.requests, summary.bytes, summary.duration, errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
"#;

/// Returns the script: batches if the scenario pipelines, and the counts.
pub(crate) fn script(scenario: &Scenario) -> String {
    if scenario.depth == 1 {
        return COUNTS.to_owned();
    }
    format!(
        "local batch\ninit = function(args)\n  local one = wrk.format(\"GET\", \"{}\")\n  \
         batch = string.rep(one, {})\nend\nrequest = function() return batch end\n{COUNTS}",
        scenario.path, scenario.depth
    )
}

pub(crate) fn launch(scenario: &Scenario, script: &Path, address: SocketAddr, seconds: u32) -> Launch {
    let options = format!("-t1 -c{} -d{seconds}s --timeout {TIMEOUT_S}s -s", scenario.connections);
    let target = [script.display().to_string(), format!("http://{address}{}", scenario.path)];
    Launch::new("wrk", options.split(' ').map(str::to_owned).chain(target))
}
