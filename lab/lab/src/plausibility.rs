//! Plausibility of figures: limits that arithmetic, the kernel and the machine set, for blocks of the lab (`block.rs`) and for
//! published figures (`claims.toml`) alike.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::format::{align, rounded};

/// Share of the window, in per cent, from which a busy client limits what it measures.
const CLIENT_BUSY_PERCENT_MAX: f64 = 90.0;
/// Deviation that rounding and clocks explain.
const TOLERANCE: f64 = 0.05;
/// Connections of a closed loop from which server or client always has work: with few, most time goes to wake-ups.
const BUSY_CONNECTIONS_MIN: f64 = 16.0;
/// Ports above 1023: the most between one source and one destination address.
const PORTS_MAX: f64 = 64_512.0;
/// Seconds in which a closed connection keeps its port.
const TIME_WAIT_S: f64 = 60.0;

/// Figures of one run or block, as far as they are known; `claims.toml` describes them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunFigures {
    pub(crate) connections: Option<f64>,
    pub(crate) depth: Option<f64>,
    pub(crate) requests_per_connection: Option<f64>,
    pub(crate) address_pairs: Option<f64>,
    pub(crate) ports: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) runs: Option<f64>,
    pub(crate) offered_per_s: Option<f64>,
    pub(crate) responses_per_s: Option<f64>,
    pub(crate) failures: Option<f64>,
    pub(crate) bytes_per_s: Option<f64>,
    pub(crate) response_bytes: Option<f64>,
    pub(crate) body_bytes: Option<f64>,
    pub(crate) mean_ms: Option<f64>,
    pub(crate) cores: Option<f64>,
    pub(crate) server_busy_percent: Option<f64>,
    pub(crate) client_busy_percent: Option<f64>,
    pub(crate) busy_percent: Option<f64>,
    pub(crate) link_gbit_per_s: Option<f64>,
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) buffer_bytes: Option<f64>,
}

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The figures contradict one another, the kernel or the machine.
    Impossible,
    /// The load was not the one that is named.
    Invalid,
    /// Something else than the server limited responses per second.
    Void,
    /// Too little is known.
    Unverifiable,
}

/// A quantity with its least and its greatest plausible value.
type Bounded = (f64, f64, f64);

/// Name, weight, text of a quantity, and the quantity where the figures for it are known.
type Rule = (&'static str, Weight, &'static str, fn(&RunFigures) -> Option<Bounded>);

const ANY: f64 = f64::INFINITY;

const RULES: &[Rule] = &[
    ("bytes", Weight::Impossible, "bytes a response", |it| {
        let expected = it.response_bytes.map(|all| (all * (1.0 - TOLERANCE), all * (1.0 + TOLERANCE)));
        let (least, most) = expected.or(it.body_bytes.map(|body| (body, ANY)))?;
        Some((it.bytes_per_s? / it.responses_per_s?, least, most))
    }),
    // Little's law.
    ("in-flight", Weight::Impossible, "requests in flight on average", |it| {
        // At a rate latencies count from due times: requests that could not be sent yet are in flight too.
        let most = it.connections.filter(|_| it.offered_per_s.is_none())? * it.depth.unwrap_or(1.0);
        Some((it.responses_per_s? * it.mean_ms? / 1e3, most / 2.0, most * (1.0 + TOLERANCE)))
    }),
    ("ports", Weight::Impossible, "connections at once", |it| Some((it.connections?, 0.0, it.all_ports()))),
    ("cores", Weight::Impossible, "% CPU", |it| {
        Some((it.server_busy_percent?, 0.0, it.cores? * 100.0 * (1.0 + TOLERANCE)))
    }),
    ("failures", Weight::Invalid, "wrong responses, errors and timeouts", |it| {
        Some((it.failures?, 0.0, 0.0))
    }),
    ("rate", Weight::Invalid, "% of the rate that was offered", |it| {
        Some((it.responses_per_s? / it.offered_per_s? * 100.0, 99.0, ANY))
    }),
    ("stall", Weight::Invalid, "% of the time busy, server and client together", |it| {
        let is_loaded = it.offered_per_s.is_none() && it.connections? >= BUSY_CONNECTIONS_MIN;
        is_loaded.then_some((it.busy_percent?, 40.0, ANY))
    }),
    ("time-wait", Weight::Invalid, "closed connections that keep their port", |it| {
        let opened_per_s = it.responses_per_s? / it.requests_per_connection?;
        Some((opened_per_s * it.seconds?.min(TIME_WAIT_S), 0.0, it.all_ports()))
    }),
    ("link", Weight::Void, "% of the link", |it| {
        Some((it.bytes_per_s? * 8e-7 / it.link_gbit_per_s?, 0.0, 95.0))
    }),
    ("client", Weight::Void, "% of the time busy, the client", |it| {
        Some((it.client_busy_percent?, 0.0, CLIENT_BUSY_PERCENT_MAX.next_down()))
    }),
    ("memory", Weight::Unverifiable, "bytes a connection, with buffers", |it| {
        Some((it.memory_bytes? / it.connections?, it.buffer_bytes?, ANY))
    }),
    ("runs", Weight::Unverifiable, "runs", |it| Some((it.runs.unwrap_or(0.0), 3.0, ANY))),
    ("facts", Weight::Unverifiable, "known of connections, seconds, failures, the client's CPU time", |it| {
        let facts = [it.connections, it.seconds, it.failures, it.client_busy_percent];
        Some((facts.iter().flatten().count() as f64, 4.0, ANY))
    }),
];

impl RunFigures {
    /// Returns the rules that are broken, each with the reason.
    pub(crate) fn findings(&self) -> impl Iterator<Item = (&'static str, Weight, String)> {
        RULES.iter().filter_map(|(rule, weight, text, quantity)| {
            let (found, least, most) = quantity(self)?;
            let bound = match (found < least, found > most) {
                (true, _) => format!("at least {}", rounded(least)),
                (_, true) => format!("at most {}", rounded(most)),
                _ => return None,
            };
            Some((*rule, *weight, format!("{} {text}, {bound} expected", rounded(found))))
        })
    }

    /// Returns the reasons for which a block does not count, with their rules.
    pub(crate) fn faults(&self) -> impl Iterator<Item = (&'static str, String)> {
        let is_fault = |weight| matches!(weight, Weight::Impossible | Weight::Invalid);
        self.findings().filter(move |it| is_fault(it.1)).map(|(rule, _, reason)| (rule, reason))
    }

    fn all_ports(&self) -> f64 {
        self.ports.unwrap_or(PORTS_MAX) * self.address_pairs.unwrap_or(1.0)
    }
}

/// Returns true if the client was so busy that responses per second are its own.
pub(crate) fn is_client_bound(busy_percent: f64) -> bool {
    busy_percent >= CLIENT_BUSY_PERCENT_MAX
}

/// A published result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    name: String,
    source: String,
    figures: RunFigures,
    /// Rules that are known to flag it.
    #[serde(default)]
    flagged: Vec<String>,
}

fn parse(name: &str, text: &str) -> Result<Vec<Claim>, String> {
    let claims: BTreeMap<String, Vec<Claim>> = toml::from_str(text)
        .map_err(|error| format!("{name}: {error}help: lab/lab/claims.toml describes the fields"))?;
    Ok(claims.into_values().flatten().collect())
}

/// Prints what the rules find in a file of figures, or in the published ones. Returns false if one is impossible or
/// of an invalid run, and that is not known.
pub(crate) fn run(file: Option<&Path>) -> Result<bool, String> {
    let claims = match file {
        None => parse("claims.toml", include_str!("../claims.toml"))?,
        Some(path) => {
            let name = path.display().to_string();
            parse(&name, &fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?)?
        }
    };
    let mut rows = vec![["claim", "verdict", "rule", "reason"].map(str::to_owned)];
    for Claim { name, source, figures, .. } in &claims {
        rows.push([name.clone(), String::new(), String::new(), source.clone()]);
        rows.extend(figures.findings().map(|(rule, weight, reason)| {
            [String::new(), format!("{weight:?}").to_lowercase(), rule.to_owned(), reason]
        }));
        if figures.findings().next().is_none() {
            rows.push(["", "plausible", "", ""].map(str::to_owned));
        }
    }
    print!("{}", align(&rows));
    let is_known =
        |it: &Claim| it.figures.faults().all(|(rule, _)| it.flagged.iter().any(|known| known == rule));
    Ok(claims.iter().all(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_published_figures_by_the_rules_that_they_break() {
        for claim in parse("claims.toml", include_str!("../claims.toml")).expect("it is well-formed") {
            let rules: Vec<&str> = claim.figures.findings().map(|(rule, _, _)| rule).collect();
            assert_eq!(rules, claim.flagged, "{}", claim.name);
        }
    }

    #[test]
    fn each_rule_flags_figures_beyond_its_bound_alone() {
        for case in parse("cases", include_str!("plausibility_cases.toml")).expect("it is well-formed") {
            let mut findings = case.figures.findings().filter(|it| !["runs", "facts"].contains(&it.0));
            let (rule, reason) = findings.next().map_or(("", String::new()), |it| (it.0, it.2));
            assert_eq!((rule, reason, findings.next()), (&*case.flagged.concat(), case.name, None));
        }
    }

    #[test]
    fn wrong_files_are_refused_with_place_and_help() {
        let text = "[[claim]]\nname = 'a'\nsource = 'b'\nfigures = { port = 1 }";
        let error = parse("own.toml", text).expect_err("wrong");
        for part in ["own.toml: ", "unknown field `port`", "line 4", "\nhelp: "] {
            assert!(error.contains(part), "{error}");
        }
    }
}
