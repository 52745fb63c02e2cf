//! One attack's row: as text with its columns, and as JSON.

use std::time::Duration;

use super::aftermath::Left;
use super::attack::Attack;
use super::course::{Observed, Side};
use super::latency::{p99_by_second_us, p99_us};
use super::verdict::{Checks, growth_mib, noise, p99_growth, p99_of};
use crate::harness::report::quoted;

/// A finished attack.
#[derive(Debug)]
pub(super) struct Row {
    driver: &'static str,
    attack: &'static Attack,
    observed: Observed,
    left: Left,
    checks: Checks,
}

/// The columns' names, as wide as their figures.
pub(super) const HEADING: &str = "      driver attack            p99 us alone beside (factor, noise, own)   CPU % alone beside    MiB before   peak  left  put out";

impl Row {
    /// The row of an attack whose last wave was watched for `watch`.
    pub(super) fn new(
        driver: &'static str,
        attack: &'static Attack,
        observed: Observed,
        left: Left,
        watch: Duration,
    ) -> Self {
        let checks = Checks::of(attack, &observed, &left, watch);
        Self { driver, attack, observed, left, checks }
    }

    /// True if every bound held.
    pub(super) fn passed(&self) -> bool {
        self.checks.passed()
    }

    /// One line, and one more for each bound that did not hold.
    pub(super) fn text(&self) -> String {
        let Self { driver, attack, observed, left, .. } = self;
        let word = if self.passed() { "PASS" } else { "FAIL" };
        let p99 = [&observed.quiet, &observed.attacked].map(|side| shown(p99_of(observed, side), 0));
        let factors = [p99_growth(observed), noise(observed)].map(|factor| shown(factor, 2));
        let own = shown(self.own_p99_us(&observed.attacked), 0);
        let cpu = [&observed.quiet, &observed.attacked].map(|side| shown(side.cpu.server_percent(), 1));
        let mib = |kib: Option<u64>| shown(growth_mib(Some(0), kib), 1);
        let (before, peak, after) = (observed.before, observed.after, left.figures);
        let mut text = format!(
            "{word}  {driver:6} {:16} {:>12} {:>6} ({:>6} x, {:>5} x, {own:>4}) {:>17} {:>6}    {:>10} {:>6} {:>5}  {}",
            attack.name,
            p99[0],
            p99[1],
            factors[0],
            factors[1],
            cpu[0],
            cpu[1],
            mib(before.rss_kib),
            mib(peak.rss_peak_kib),
            mib(after.rss_kib),
            observed.ends.summary(),
        );
        for check in self.checks.list.iter().filter(|check| !check.held) {
            text.push_str(&format!("\n        {}: {} (bound {})", check.what, check.measured, check.bound));
        }
        text
    }

    /// How late the normal clients' own thread was.
    fn own_p99_us(&self, side: &Side) -> Option<f64> {
        p99_us(&self.observed.seen.lateness, &side.stretches)
    }

    /// One object.
    pub(super) fn json(&self) -> String {
        let Self { driver, attack, observed, left, checks } = self;
        let figures = [
            ("p99_alone_us", p99_of(observed, &observed.quiet)),
            ("p99_beside_us", p99_of(observed, &observed.attacked)),
            ("p99_growth", p99_growth(observed)),
            ("p99_noise", noise(observed)),
            ("clients_lateness_p99_alone_us", self.own_p99_us(&observed.quiet)),
            ("clients_lateness_p99_beside_us", self.own_p99_us(&observed.attacked)),
            ("cpu_alone_percent", observed.quiet.cpu.server_percent()),
            ("cpu_beside_percent", observed.attacked.cpu.server_percent()),
            ("cpu_at_rest_percent", left.cpu_percent),
            ("rss_before_mib", growth_mib(Some(0), observed.before.rss_kib)),
            ("rss_peak_mib", growth_mib(Some(0), observed.after.rss_peak_kib)),
            ("rss_left_mib", growth_mib(Some(0), left.figures.rss_kib)),
            ("descriptors_before", observed.before.descriptors.map(|count| count as f64)),
            ("descriptors_left", left.figures.descriptors.map(|count| count as f64)),
            ("connections_left", left.figures.connections.map(|count| count as f64)),
        ];
        let number = |figure: Option<f64>| figure.map_or("null".to_owned(), |figure| format!("{figure:.3}"));
        let figures = figures.map(|(name, figure)| format!("{}:{}", quoted(name), number(figure)));
        let last_wave = observed.attacked.stretches.last();
        let seconds = last_wave.map(|wave| p99_by_second_us(&observed.seen.samples, *wave));
        let seconds: Vec<String> = seconds.into_iter().flatten().map(number).collect();
        let ends = observed.ends.iter().map(|(end, count)| {
            let (first, last) = (count.first.as_secs_f64(), count.last.as_secs_f64());
            let label = quoted(&end.label());
            format!(
                "{{\"end\":{label},\"count\":{},\"first_s\":{first:.3},\"last_s\":{last:.3}}}",
                count.count
            )
        });
        let checks_json = checks.list.iter().map(|check| {
            let (measured, bound) = (quoted(&check.measured), quoted(&check.bound));
            let (what, held) = (quoted(check.what), check.held);
            format!("{{\"what\":{what},\"measured\":{measured},\"bound\":{bound},\"held\":{held}}}")
        });
        format!(
            "{{\"driver\":{},\"attack\":{},\"about\":{},\"connections\":{},\"passed\":{},{},\"last_wave_p99_by_second_us\":[{}],\"ends\":[{}],\"checks\":[{}]}}",
            quoted(driver),
            quoted(attack.name),
            quoted(attack.about),
            attack.count,
            checks.passed(),
            figures.join(","),
            seconds.join(","),
            ends.collect::<Vec<_>>().join(","),
            checks_json.collect::<Vec<_>>().join(","),
        )
    }
}

fn shown(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or("?".to_owned(), |figure| format!("{figure:.decimals$}"))
}
