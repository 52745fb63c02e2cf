//! One whole soak of one driver: the servers' start, a warm-up of the same kinds, the soak, and what is left of it.

use std::time::Duration;

use super::crew::{Amount, visit_all};
use super::kind::KINDS;
use super::left::{self, Moment};
use super::site::Site;
use super::tally::Tally;
use super::told;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::core_percent;
use crate::harness::report::Report;
use crate::harness::trouble::Outcome;

/// The warm-up is one in so many of the whole, and at least [`WARM_UP_MIN`] requests and connections.
const WARM_UP_PART: u64 = 20;
/// With fewer not every kind has been drawn some times on every worker.
const WARM_UP_MIN: u64 = 20_000;

/// Soaks both servers.
pub(super) fn run(common: &Common, amount: &Amount, name: &str) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let site = Site::start(common, &folder)?;
    // The connections of the first questions have ended then.
    std::thread::sleep(left::GIVE_BACK);
    let start = Moment::of(&site);
    let (warmed, _) = visit_all(&site, &warm_up_of(amount), &format!("{name}: warm-up"));
    let before = left::settle(&site, &start);
    let (tally, took) = visit_all(&site, amount, name);
    let busy = Moment::of(&site);
    let after = left::settle(&site, &start);
    let wakes = left::wakes(&site);

    let mut report = Report::new();
    report_answers(&mut report, "warm-up", &warmed);
    report_answers(&mut report, "soak", &tally);
    report_amount(&mut report, amount, &tally, took);
    for (at, (which, server)) in site.servers().into_iter().enumerate() {
        let share = core_percent(before.cpu_ns[at], busy.cpu_ns[at], took);
        let share = share.map_or("not measured".to_owned(), |share| format!("{share:.0} % of a core"));
        report.note(&format!("{which}: CPU while it lasted"), share);
        let moments = [&start, &before, &after].map(|moment| moment.snapshots[at]);
        left::report(&mut report, which, moments, wakes[at], common.workers);
        told::report_open(&mut report, which, server);
    }
    let mut all = warmed;
    all.add(tally);
    told::report_and_stop(site, &all, &mut report)?;
    Ok(report)
}

/// Another seed: the soak is not what the warm-up was.
fn warm_up_of(amount: &Amount) -> Amount {
    let connections = (amount.connections / WARM_UP_PART).max(WARM_UP_MIN);
    let requests = (amount.requests / WARM_UP_PART).max(WARM_UP_MIN);
    Amount { requests, connections, seed: amount.seed + 1, ..*amount }
}

fn report_answers(report: &mut Report, name: &str, tally: &Tally) {
    let wanted = tally.sent - tally.given_up;
    report.equal(&format!("{name}: right answers, byte for byte"), tally.right, wanted);
    report.note(&format!("{name}: given up in a reset"), tally.given_up);
    report.equal(&format!("{name}: wrong connections"), tally.wrong.len() as u64, 0);
    report.examples("wrong", &tally.wrong);
}

fn report_amount(report: &mut Report, amount: &Amount, tally: &Tally, took: Duration) {
    let seconds = took.as_secs_f64();
    let counts =
        [("answers", tally.right, amount.requests), ("connections", tally.connections, amount.connections)];
    for (what, count, asked) in counts {
        report.check(what, count, format!(">= {asked}"), count >= asked);
        report.note(&format!("{what} per second"), format!("{:.0}", count as f64 / seconds));
    }
    report.note("took", format!("{seconds:.1} s"));
    report.note("bytes compared", tally.bytes);
    for ((_, name, _), count) in KINDS.iter().zip(tally.kinds) {
        report.check(&format!("connections: {name}"), count, "> 0", count > 0);
    }
    let slow = tally.connections - tally.kinds.iter().sum::<u64>();
    report.check("connections: slow", slow, "> 0", slow > 0);
}
