//! The bounds that hold for every attack, and the checks of one attack against them and its own.

use std::time::Duration;

use super::aftermath::Left;
use super::attack::Attack;
use super::course::{Observed, Side};
use super::ending::How;
use super::latency::p99_us;

/// The normal clients' p99 may grow by this factor.
const P99_GROWTH_MAX: f64 = 2.0;
/// Other programs may use this much, per cent of a core; beyond, no p99 is valid.
const OTHERS_MAX: f64 = 20.0;
/// A server that rests may use this much, per cent of a core.
const REST_CPU_MAX: f64 = 1.0;
const KIB_PER_MIB: f64 = 1024.0;

/// A bound with what was measured.
#[derive(Debug)]
pub(super) struct Check {
    /// What was checked.
    pub(super) what: &'static str,
    /// What was measured.
    pub(super) measured: String,
    /// What had to hold.
    pub(super) bound: String,
    /// Whether it held.
    pub(super) held: bool,
}

/// The checks of an attack.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// In the order of the table's columns.
    pub(super) list: Vec<Check>,
}

impl Checks {
    /// Every check of one attack whose last wave was watched for `watch`.
    pub(super) fn of(attack: &Attack, observed: &Observed, left: &Left, watch: Duration) -> Self {
        let mut checks = Self::default();
        checks.normal_clients(observed);
        checks.costs(attack, observed);
        checks.ends(attack, observed, watch);
        checks.left(attack, observed, left);
        checks
    }

    /// True if every bound held.
    pub(super) fn passed(&self) -> bool {
        self.list.iter().all(|check| check.held)
    }

    fn push(&mut self, what: &'static str, measured: String, bound: String, held: bool) {
        self.list.push(Check { what, measured, bound, held });
    }

    /// A figure that has to be measured: one that is missing has not held.
    fn at_most(&mut self, what: &'static str, measured: Option<f64>, bound: f64, unit: &str) {
        let shown = measured.map_or("not measured".to_owned(), |figure| format!("{figure:.2} {unit}"));
        let held = measured.is_some_and(|figure| figure <= bound);
        self.push(what, shown, format!("<= {bound:.2} {unit}"), held);
    }

    fn normal_clients(&mut self, observed: &Observed) {
        self.at_most("p99 beside attackers / alone", p99_growth(observed), P99_GROWTH_MAX, "x");
        let others = [&observed.quiet, &observed.attacked].map(|side| side.cpu.others_percent());
        let others = others.into_iter().collect::<Option<Vec<f64>>>();
        let most = others.and_then(|shares| shares.into_iter().reduce(f64::max));
        self.at_most("CPU of other programs, else no p99 is valid", most, OTHERS_MAX, "% of a core");
        let failures = observed.seen.failures;
        let shown = format!("{failures} {}", observed.seen.examples.join("; "));
        self.push("normal requests without a right answer", shown, "0".to_owned(), failures == 0);
    }

    fn costs(&mut self, attack: &Attack, observed: &Observed) {
        let extra = |attacked: f64| Some(attacked - observed.quiet.cpu.server_percent()?);
        let extra = observed.attacked.cpu.server_percent().and_then(extra);
        self.at_most("CPU for the attackers", extra, attack.bounds.cpu_percent, "% of a core");
        let grown = growth_mib(observed.before.rss_kib, observed.after.rss_peak_kib);
        self.at_most("memory at the peak, beyond before", grown, attack.bounds.peak_mib, "MiB");
    }

    fn ends(&mut self, attack: &Attack, observed: &Observed, watch: Duration) {
        let latest = attack.bounds.ends.iter().map(|(_, latest)| *latest).fold(0.0, f64::max);
        let watched = watch.as_secs_f64() >= latest;
        let as_expected = |label: &str, last: Duration| {
            attack.bounds.ends.iter().any(|(name, latest)| *name == label && last.as_secs_f64() <= *latest)
        };
        let mut others: Vec<String> = Vec::new();
        for (end, count) in observed.ends.iter() {
            let unwatched = end.how == How::Held && !watched;
            if !unwatched && !as_expected(&end.label(), count.last) {
                others.push(format!(
                    "{} x {} (until {:.1} s)",
                    end.label(),
                    count.count,
                    count.last.as_secs_f64()
                ));
            }
        }
        let seen: u64 = observed.ends.iter().map(|(_, count)| count.count).sum();
        if seen != attack.count {
            others.push(format!("{seen} of {} connections", attack.count));
        }
        let bound = attack.bounds.ends.iter().map(|(name, latest)| format!("{name} within {latest} s"));
        let bound = format!("only: {}", bound.collect::<Vec<_>>().join(", "));
        self.push("other ends", others.join(", "), bound, others.is_empty());
    }

    fn left(&mut self, attack: &Attack, observed: &Observed, left: &Left) {
        let (before, after) = (observed.before.descriptors, left.figures.descriptors);
        let descriptors = growth(before, after);
        self.at_most("descriptors left, beyond before", descriptors, 0.0, "");
        let connections = left.figures.connections.map(|count| count as f64);
        self.at_most("connections left", connections, 0.0, "");
        let grown = growth_mib(observed.before.rss_kib, left.figures.rss_kib);
        self.at_most("memory left, beyond before", grown, attack.bounds.left_mib, "MiB");
        self.at_most("CPU at rest", left.cpu_percent, REST_CPU_MAX, "% of a core");
        let answers = left.answers.clone().err().unwrap_or_else(|| "yes".to_owned());
        self.push("answers after a minute", answers, "yes".to_owned(), left.answers.is_ok());
        let ended = if left.ended { "yes" } else { "no" };
        self.push("ends by SIGTERM with exit code 0", ended.to_owned(), "yes".to_owned(), left.ended);
    }
}

/// The p99 of one side, microseconds.
pub(super) fn p99_of(observed: &Observed, side: &Side) -> Option<f64> {
    p99_us(&observed.seen.samples, &side.stretches)
}

/// The p99 beside attackers over the one alone.
pub(super) fn p99_growth(observed: &Observed) -> Option<f64> {
    let (quiet, attacked) = (p99_of(observed, &observed.quiet)?, p99_of(observed, &observed.attacked)?);
    (quiet > 0.0).then(|| attacked / quiet)
}

/// The machine's own noise: the largest p99 of the quiet stretches over the smallest.
pub(super) fn noise(observed: &Observed) -> Option<f64> {
    let each = observed.quiet.stretches.iter().map(|one| p99_us(&observed.seen.samples, &[*one]));
    let each: Vec<f64> = each.collect::<Option<Vec<f64>>>()?;
    let (least, most) = (each.iter().copied().reduce(f64::min)?, each.iter().copied().reduce(f64::max)?);
    (least > 0.0).then(|| most / least)
}

fn growth(before: Option<u64>, after: Option<u64>) -> Option<f64> {
    Some(after? as f64 - before? as f64)
}

/// Growth in MiB of two figures in KiB.
pub(super) fn growth_mib(before_kib: Option<u64>, after_kib: Option<u64>) -> Option<f64> {
    growth(before_kib, after_kib).map(|kib| kib / KIB_PER_MIB)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Checks;
    use crate::hostile::aftermath::Left;
    use crate::hostile::attack::{Attack, Bounds, Host};
    use crate::hostile::course::{Observed, Side};
    use crate::hostile::ending::{End, How, Tally};
    use crate::hostile::latency::Stretch;
    use crate::hostile::meter::{Cpu, Figures};
    use crate::hostile::normal::Seen;
    use crate::hostile::parts;

    const ATTACK: Attack = Attack {
        name: "test",
        about: "",
        host: Host::Folder,
        count: 2,
        script: parts::silence,
        bounds: Bounds { cpu_percent: 10.0, peak_mib: 4.0, left_mib: 1.0, ends: &[("408 closed", 12.0)] },
    };
    const WATCH: Duration = Duration::from_secs(20);

    /// Two stretches of a second: 100 us alone, 150 us beside attackers, who are put out after ten seconds.
    fn good() -> (Observed, Left) {
        let start = Instant::now();
        let middle = start + Duration::from_secs(1);
        let side = |start, percent| Side {
            stretches: vec![Stretch { start, end: start + Duration::from_secs(1) }],
            cpu: Cpu::of(Duration::from_secs(1), percent, 1.0),
        };
        let figures = |rss_kib| Figures {
            rss_kib: Some(rss_kib),
            rss_peak_kib: Some(rss_kib),
            descriptors: Some(11),
            connections: Some(0),
        };
        let samples = vec![(start, Duration::from_micros(100)), (middle, Duration::from_micros(150))];
        let mut ends = Tally::default();
        for _ in 0..2 {
            ends.add(End { status: Some(408), how: How::Closed }, Duration::from_secs(10));
        }
        let observed = Observed {
            quiet: side(start, 1.0),
            attacked: side(middle, 5.0),
            seen: Seen { samples, ..Seen::default() },
            before: figures(3_000),
            after: figures(6_000),
            ends,
        };
        (observed, Left { figures: figures(3_500), cpu_percent: Some(0.0), answers: Ok(()), ended: true })
    }

    /// What did not hold after `spoil`.
    fn failed(watch: Duration, spoil: impl FnOnce(&mut Observed, &mut Left)) -> Vec<&'static str> {
        let (mut observed, mut left) = good();
        spoil(&mut observed, &mut left);
        let checks = Checks::of(&ATTACK, &observed, &left, watch);
        assert_eq!(checks.passed(), checks.list.iter().all(|check| check.held));
        checks.list.iter().filter(|check| !check.held).map(|check| check.what).collect()
    }

    #[test]
    fn what_stays_within_its_bounds_passes() {
        assert_eq!(failed(WATCH, |_, _| ()), [""; 0]);
    }

    #[test]
    fn each_bound_that_is_passed_fails_alone() {
        let late = |observed: &mut Observed, _: &mut Left| {
            observed.seen.samples[1].1 = Duration::from_micros(201);
        };
        assert_eq!(failed(WATCH, late), ["p99 beside attackers / alone"]);
        assert_eq!(
            failed(WATCH, |observed, _| observed.seen.failures = 1),
            ["normal requests without a right answer"]
        );
        let second = Duration::from_secs(1);
        assert_eq!(
            failed(WATCH, |observed, _| observed.attacked.cpu = Cpu::of(second, 12.0, 1.0)),
            ["CPU for the attackers"]
        );
        assert_eq!(
            failed(WATCH, |observed, _| observed.quiet.cpu = Cpu::of(second, 1.0, 30.0)),
            ["CPU of other programs, else no p99 is valid"]
        );
        assert_eq!(
            failed(WATCH, |observed, _| observed.after.rss_peak_kib = Some(7_200)),
            ["memory at the peak, beyond before"]
        );
        assert_eq!(
            failed(WATCH, |_, left| left.figures.rss_kib = Some(4_100)),
            ["memory left, beyond before"]
        );
        assert_eq!(
            failed(WATCH, |_, left| left.figures.descriptors = Some(12)),
            ["descriptors left, beyond before"]
        );
        assert_eq!(failed(WATCH, |_, left| left.figures.connections = Some(1)), ["connections left"]);
        assert_eq!(failed(WATCH, |_, left| left.cpu_percent = Some(3.0)), ["CPU at rest"]);
        assert_eq!(failed(WATCH, |_, left| left.answers = Err("none".into())), ["answers after a minute"]);
        assert_eq!(failed(WATCH, |_, left| left.ended = false), ["ends by SIGTERM with exit code 0"]);
    }

    #[test]
    fn what_is_not_measured_does_not_pass() {
        assert_eq!(
            failed(WATCH, |observed, _| observed.seen.samples.clear()),
            ["p99 beside attackers / alone"]
        );
        assert_eq!(failed(WATCH, |_, left| left.figures.connections = None), ["connections left"]);
    }

    #[test]
    fn an_end_of_another_kind_too_late_or_missing_fails() {
        let put = |status, how, seconds| {
            move |observed: &mut Observed, _: &mut Left| {
                observed.ends = Tally::default();
                for after in [10, seconds] {
                    observed.ends.add(End { status, how }, Duration::from_secs(after));
                }
            }
        };
        assert_eq!(failed(WATCH, put(Some(408), How::Closed, 12)), [""; 0]);
        assert_eq!(failed(WATCH, put(Some(408), How::Closed, 13)), ["other ends"]);
        assert_eq!(failed(WATCH, put(Some(408), How::Reset, 10)), ["other ends"]);
        assert_eq!(failed(WATCH, put(None, How::Held, 20)), ["other ends"]);
        let one_missing = |observed: &mut Observed, _: &mut Left| observed.ends = Tally::default();
        assert_eq!(failed(WATCH, one_missing), ["other ends"]);
        // Whoever was not watched until his time was over may still be there.
        assert_eq!(failed(Duration::from_secs(5), put(None, How::Held, 5)), [""; 0]);
    }
}
