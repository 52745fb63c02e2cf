//! The checks of a case: measured values with their bounds.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::process::ExitStatus;
use std::time::Duration;

use serde::Serialize;
use testkit::Program;

use crate::context::Usage;

/// Different examples of one kind that a report shows.
const EXAMPLES_MAX: usize = 10;
/// Characters of an example that a report shows.
const EXAMPLE_CHARS_MAX: usize = 300;
/// Time that a server without work may take to exit after `SIGTERM`.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// A measured value.
#[derive(Debug, Serialize)]
struct Check {
    what: String,
    measured: String,
    bound: String,
    /// `None` for a value without a bound, or one that this system doesn't offer.
    passed: Option<bool>,
}

/// The checks of one case.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct CaseReport {
    checks: Vec<Check>,
}

impl CaseReport {
    /// Adds a value without a bound.
    pub(crate) fn note(&mut self, what: impl Display, measured: impl Display) {
        self.push(what, measured, "", None);
    }

    /// Adds a check with its result.
    pub(crate) fn check(
        &mut self,
        what: impl Display,
        measured: impl Display,
        bound: impl Display,
        passed: bool,
    ) {
        self.push(what, measured, bound, Some(passed));
    }

    /// Checks a value that must be exactly `expected`.
    pub(crate) fn equal<T: Copy + PartialEq + Display>(
        &mut self,
        what: impl Display,
        measured: T,
        expected: T,
    ) {
        self.check(what, measured, format!("= {expected}"), measured == expected);
    }

    /// Checks a count with bounds.
    pub(crate) fn within(&mut self, what: impl Display, measured: u64, bounds: RangeInclusive<u64>) {
        let (least, most) = (*bounds.start(), *bounds.end());
        let bound = if most == u64::MAX { format!(">= {least}") } else { format!("{least} to {most}") };
        self.check(what, measured, bound, bounds.contains(&measured));
    }

    /// Checks a value of at most `bound`. A value that the system doesn't offer is only noted.
    pub(crate) fn at_most(
        &mut self,
        what: impl Display,
        measured: impl Into<Option<f64>>,
        bound: f64,
        unit: &str,
    ) {
        match measured.into() {
            Some(value) => {
                self.check(what, format!("{value:.2} {unit}"), format!("<= {bound} {unit}"), value <= bound);
            }
            None => self.note(what, "not measured"),
        }
    }

    /// Checks growth of at most `bound`, in the values' unit.
    pub(crate) fn growth(
        &mut self,
        what: impl Display,
        before: Option<u64>,
        after: Option<u64>,
        bound: f64,
        unit: &str,
    ) {
        self.at_most(
            what,
            before.zip(after).map(|(before, after)| after as f64 - before as f64),
            bound,
            unit,
        );
    }

    /// Checks that a server has no more descriptors than before, and at most so much more memory.
    pub(crate) fn left(&mut self, what: impl Display, before: Usage, after: Usage, kib_max: f64) {
        self.growth(format!("{what}: descriptors, growth"), before.descriptors, after.descriptors, 0.0, "");
        self.note(format!("{what}: resident, KiB"), shown(after.rss_kib));
        self.growth(format!("{what}: resident, growth"), before.rss_kib, after.rss_kib, kib_max, "KiB");
    }

    /// Checks that a list of errors is empty, and shows some of them.
    pub(crate) fn none<T: Display>(&mut self, what: impl Display, errors: &[T]) {
        self.equal(what, errors.len(), 0);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for error in errors {
            *counts.entry(error.to_string().chars().take(EXAMPLE_CHARS_MAX).collect()).or_default() += 1;
        }
        for (error, count) in counts.iter().take(EXAMPLES_MAX) {
            self.note("  error", format!("{count} x {error}"));
        }
    }

    /// Stops a server and checks that it was alive until then and exits with status 0.
    pub(crate) fn stop(&mut self, server: &mut Program) {
        let alive = server.is_alive();
        let status = server.stop(STOP_TIMEOUT);
        self.check("exit after SIGTERM", exit(status), "exit status: 0", alive && success(status));
        if !success(status) {
            self.note("end of the log", server.log().lines().last().unwrap_or_default());
        }
    }

    /// Returns true if at least one check was made and all passed.
    pub(crate) fn passed(&self) -> bool {
        let mut results = self.checks.iter().filter_map(|check| check.passed).peekable();
        results.peek().is_some() && results.all(|passed| passed)
    }

    /// Prints all checks, or only the count.
    pub(crate) fn print(&self, verbose: bool) {
        let width = |cell: fn(&Check) -> &str| {
            self.checks.iter().map(|check| cell(check).chars().count()).max().unwrap_or(0).min(56)
        };
        let (what_width, measured_width) = (width(|check| &check.what), width(|check| &check.measured));
        for Check { what, measured, bound, passed } in self.checks.iter().filter(|_| verbose) {
            let mark = match passed {
                Some(true) => "ok  ",
                Some(false) => "FAIL",
                None => "    ",
            };
            let line = format!("  {mark} {what:what_width$}  {measured:measured_width$}  {bound}");
            println!("{}", line.trim_end());
        }
    }

    fn push(
        &mut self,
        what: impl Display,
        measured: impl Display,
        bound: impl Display,
        passed: Option<bool>,
    ) {
        let (what, measured, bound) = (what.to_string(), measured.to_string(), bound.to_string());
        self.checks.push(Check { what, measured, bound, passed });
    }
}

/// Formats an exit status, which is `None` for a process that still runs.
pub(crate) fn exit(status: Option<ExitStatus>) -> String {
    status.map_or("still running".to_owned(), |status| status.to_string())
}

/// Returns true for a process that has exited with status 0.
pub(crate) fn success(status: Option<ExitStatus>) -> bool {
    status.is_some_and(|status| status.success())
}

/// Formats an optional value.
pub(crate) fn shown<T: Display>(value: Option<T>) -> String {
    value.map_or("not measured".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::CaseReport;

    #[test]
    fn passes_only_if_something_was_checked_and_all_held() {
        let mut report = CaseReport::default();
        report.note("value", 3);
        report.at_most("memory", None, 1.0, "MiB");
        assert!(!report.passed());
        report.equal("count", 4, 4);
        report.none("errors", &[""; 0]);
        assert!(report.passed());
        for spoil in [
            |report: &mut CaseReport| report.at_most("ratio", 1.6, 1.5, "x"),
            |report: &mut CaseReport| report.none("errors", &["one"]),
            |report: &mut CaseReport| report.growth("fds", Some(3), Some(4), 0.0, ""),
        ] {
            let mut report = CaseReport::default();
            report.equal("count", 4, 4);
            spoil(&mut report);
            assert!(!report.passed());
        }
    }
}
