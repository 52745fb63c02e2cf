//! Rule `clock`: time comes from the driver.
//!
//! A worker reads the clock once a turn, through its driver. So a turn sees one time, a request costs no clock reading,
//! and a test can hold the clock in its hand.

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "clock",
    reason: "no Instant::now or SystemTime::now outside io and cli: the driver reads the clock once a turn, and tests can drive it",
    check,
};

const MAY_READ: &[&str] = &["io", "cli"];

/// The operator's thread, which waits for the workers with a deadline and is no worker itself.
const OPERATOR: &str = "crates/shearwater/src/server.rs";

fn check(tree: &Tree, report: &mut Report<'_>) {
    let bound = |room: Option<&str>| room.is_some_and(|room| !MAY_READ.contains(&room));
    for (file, code) in
        tree.rust().filter(|(file, _)| file.is_shipped() && bound(file.room()) && file.path != OPERATOR)
    {
        for clock in ["Instant", "SystemTime"] {
            for token in code.paths(&[clock, "now"]).filter(|token| !token.test) {
                let instead = "take the time from `Driver::now_ms` or `Driver::unix_seconds`";
                report.add(&file.path, token.line, format!("reads `{clock}::now`"), instead);
            }
        }
    }
}
