//! One block: a fresh server, a probe, a warm-up, a window, and a judgement whether it counts.

use std::time::Instant;

use serde::Serialize;
use serde_json::json;

use crate::bench::{
    MeasuredRound, RoundFigures, RunSettings, ServerSetup, StartedServer, exchange, length, run_client,
};
use crate::client::{LoadCounts, SOURCE_ADDRESSES};
use crate::plausibility::{RunFigures, is_client_bound};
use crate::process::{self, CLIENT_CORE, CpuReading, SERVER_CORE, on_core, under};
use crate::scenario::Scenario;
use crate::scrape::Scraper;
use crate::server::ServerSpec;

/// Seconds in which system calls are counted, and one more for so many connections: their accepts count too.
const SYSTEM_CALLS_S: u32 = 1;
const SYSTEM_CALLS_CONNECTIONS: u32 = 1_000;
const SYSTEM_CALL_EVENT: &str = "raw_syscalls:sys_enter";
/// Maximum run-queue wait of the server's threads, in per cent of the window: more means that something else ran on its core.
const WAIT_PERCENT_MAX: f64 = 1.0;
/// The same where connections end: kernel threads free sockets on the server's core, about 1 % for every server alike.
const WAIT_PERCENT_MAX_CHURN: f64 = 3.0;
/// The same where each request has a connection: some 3 % for every server that waits for many clients.
const WAIT_PERCENT_MAX_CLOSE: f64 = 6.0;
/// Maximum time of others on the server's core, in per cent of the window. It replaces the wait where the server's threads wait
/// for one another; it is counted in ticks and includes interrupts.
const FOREIGN_PERCENT_MAX: f64 = 5.0;
/// The same where connections end: a thread that ends with its connection runs on after its time was accounted, 7 to 10 % of
/// the core for the ladder's `threads`. So the CPU figure of such a server is that much too low.
const FOREIGN_PERCENT_MAX_CHURN: f64 = 15.0;

/// Readings before and after a window.
#[derive(Debug, Clone, Default, Serialize)]
struct Window {
    #[serde(flatten)]
    counts: LoadCounts,
    response_bytes: u64,
    response_bytes_after: u64,
    window_ns: u64,
    server_cpu_ns: u64,
    server_wait_ns: u64,
    /// Time of others on the server's core.
    foreign_ns: u64,
    client_busy_percent: f64,
    /// Times that the server's metrics were read, if they were.
    scrapes: Option<u32>,
    /// Handlers ready in a turn, on average.
    handlers_ready_a_turn: Option<f64>,
    rss_mib: f64,
    rss_peak_mib: f64,
    server_command: String,
    client_command: String,
}

/// Runs a block. An error means that it could not be run, or not to its end.
pub(crate) fn run(setup: &ServerSetup<'_>) -> Result<MeasuredRound, String> {
    let StartedServer { process: server, bytes, expected, line } = setup.start_warm()?;
    let client = setup.own_client(&setup.load(&expected, setup.bench.settings.seconds))?;
    let ready_before = ready_counts(setup)?;
    let (before, client_before_ns) = (CpuReading::of(server.ids())?, process::children_cpu_ns());
    let idle_before_ns = process::idle_ns(SERVER_CORE)?;
    let scraper = setup.spec.scrape.as_ref().map(|name| Scraper::start(setup.bench.folder.path().join(name)));
    let started = Instant::now();
    let counts = run_client(&client)?;
    let window_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let spent = CpuReading::of(server.ids())?.since(before, setup.spec.pool)?;
    let idle_ns = process::idle_ns(SERVER_CORE)?.saturating_sub(idle_before_ns);
    let scrapes = scraper.map(Scraper::end).transpose()?;
    let client_ns = process::children_cpu_ns().saturating_sub(client_before_ns);
    let ready = ready_counts(setup)?.zip(ready_before);
    let window = Window {
        counts,
        response_bytes: bytes,
        window_ns,
        server_cpu_ns: spent.cpu_ns,
        server_wait_ns: spent.wait_ns,
        foreign_ns: window_ns.saturating_sub(idle_ns).saturating_sub(spent.cpu_ns),
        client_busy_percent: percent(client_ns, window_ns),
        scrapes,
        handlers_ready_a_turn: ready.map(|(now, before)| (now.1 - before.1) / (now.0 - before.0).max(1.0)),
        // Before the second probe, which is no part of the window.
        rss_mib: server.mib(testkit::process::rss_kib)?,
        rss_peak_mib: server.mib(testkit::process::rss_peak_kib)?,
        response_bytes_after: length(&setup.probe()?),
        server_command: line,
        client_command: format!("{client:?}"),
    };
    let faults = window.faults(setup.scenario, setup.spec, setup.bench.settings);
    Ok(MeasuredRound { faults, figures: window.figures(setup.scenario), details: json!(window) })
}

/// Counts system calls per response by perf, in a block of its own.
pub(crate) fn count_system_calls(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let StartedServer { process: server, expected, .. } = setup.start_warm()?;
    let seconds = SYSTEM_CALLS_S + setup.scenario.connections / SYSTEM_CALLS_CONNECTIONS;
    let client = on_core(CLIENT_CORE, &setup.own_client(&setup.load(&expected, seconds))?);
    // Emptied, so that an earlier count can't pass for a missing one.
    let counted = setup.bench.folder.write("system-calls", "")?;
    let ids = server.ids().iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let out = counted.display().to_string();
    let perf =
        under("perf", &["stat", "-x,", "-e", SYSTEM_CALL_EVENT, "-p", &ids, "-o", &out, "--"], &client);
    let counts = LoadCounts::parse(&process::output(perf)?).ok_or("the client printed no counts")?;
    if counts.responses == 0 || counts.socket_errors() + counts.wrong_responses() > 0 {
        return Err("the load had errors".to_owned());
    }
    let count = std::fs::read_to_string(&counted).ok().and_then(|text| parse_system_calls(&text));
    Ok([("system_calls", count.ok_or("perf counted nothing")? as f64 / counts.responses as f64)].into())
}

/// Returns the server's turns with handlers so far, and the handlers ready in them, if the scenario needs them.
fn ready_counts(setup: &ServerSetup<'_>) -> Result<Option<(f64, f64)>, String> {
    if setup.scenario.ready_min.is_none() {
        return Ok(None);
    }
    let text =
        exchange(setup.address, None, false, b"GET /counts HTTP/1.1\r\nHost: lab\r\n\r\n", "GET")?.text();
    parse_ready(&text).map(Some).ok_or_else(|| format!("/counts: {text:?}"))
}

fn parse_ready(text: &str) -> Option<(f64, f64)> {
    let field = |name: &str| text.split_whitespace().find_map(|pair| pair.strip_prefix(name))?.parse().ok();
    Some((field("turns=")?, field("ready=")?))
}

/// Parses perf's count; none where it could not count.
fn parse_system_calls(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(SYSTEM_CALL_EVENT))?;
    line.split(',').next()?.trim().parse().ok()
}

/// Returns a part in per cent of a whole; not a number if there is no whole.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

impl Window {
    fn figures(&self, scenario: &Scenario) -> RoundFigures {
        let counts = &self.counts;
        let mut figures = RoundFigures::from([
            ("cpu_us", self.server_cpu_ns as f64 / counts.responses as f64 / 1e3),
            ("rss_mib", self.rss_mib),
            ("response_bytes", self.response_bytes as f64),
        ]);
        figures.extend(self.handlers_ready_a_turn.map(|ready| ("handlers_ready_a_turn", ready)));
        // Where the client was the limit, requests per second say nothing about the server.
        if !is_client_bound(self.client_busy_percent) || scenario.has_latencies() {
            figures.insert("responses_per_s", counts.responses as f64 / (counts.duration_us as f64 / 1e6));
        }
        if let Some(latency) = counts.latency {
            figures.extend(latency.figures());
            if scenario.hot_percent == 0 {
                // Little's law.
                let rate_per_s = counts.responses as f64 / (counts.duration_us as f64 / 1e6);
                figures.insert("in_flight", rate_per_s * latency.mean_ns as f64 / 1e9);
            }
        }
        figures
    }

    /// Returns all reasons for which it does not count.
    fn faults(&self, scenario: &Scenario, spec: &ServerSpec, settings: RunSettings) -> Vec<String> {
        let (counts, before, after) = (&self.counts, self.response_bytes, self.response_bytes_after);
        let due = scenario.rate.map_or(0, |rate| u64::from(rate) * u64::from(settings.seconds));
        let mut faults = Vec::new();
        let mut fault_if = |is_wrong: bool, text: String| faults.extend(is_wrong.then_some(text));
        fault_if(counts.responses == 0, "no responses".to_owned());
        fault_if(
            counts.wrong_responses() > 0,
            format!("{} responses with an unexpected status, length or content", counts.wrong_responses()),
        );
        fault_if(counts.socket_errors() > 0, format!("{} socket errors or timeouts", counts.socket_errors()));
        let (full, resumed) = (counts.full_handshakes, counts.resumed_handshakes);
        let unwanted = if scenario.resumes { full } else { resumed };
        fault_if(unwanted > 0, format!("{full} full handshakes and {resumed} resumed ones, not of one kind"));
        fault_if(counts.requests < due, format!("{} of {due} due requests were sent", counts.requests));
        fault_if(
            scenario.files == 0 && before != after,
            format!("a response of {before} bytes before, of {after} after"),
        );
        fault_if(self.server_cpu_ns == 0, "no CPU time counted".to_owned());
        fault_if(self.scrapes == Some(0), "its metrics were never read".to_owned());
        if let Some((ready, least)) = self.handlers_ready_a_turn.zip(scenario.ready_min) {
            let text = format!("{ready:.0} handlers ready in a turn, at least {least:.0} expected");
            fault_if(ready.is_nan() || ready < least, text);
        }
        faults.extend(self.disturbance(scenario, spec, settings));
        faults.extend(self.run_figures(scenario, settings).faults().map(|(_, reason)| reason));
        faults
    }

    /// Returns the figures for the rules of plausibility. Bytes and failures have stricter rules here.
    fn run_figures(&self, scenario: &Scenario, settings: RunSettings) -> RunFigures {
        let counts = &self.counts;
        let seconds = match scenario.rate {
            Some(_) => f64::from(settings.seconds),
            None => counts.duration_us as f64 / 1e6,
        };
        let busy = percent(self.server_cpu_ns + self.server_wait_ns, self.window_ns);
        RunFigures {
            connections: Some(scenario.connections.into()),
            depth: Some(scenario.depth.into()),
            requests_per_connection: Some(scenario.requests_per_connection.into()).filter(|ends| *ends > 0.0),
            address_pairs: Some(SOURCE_ADDRESSES as f64),
            ports: process::ephemeral_ports(),
            seconds: Some(seconds),
            offered_per_s: scenario.rate.map(Into::into),
            responses_per_s: Some(counts.responses as f64 / seconds),
            mean_ms: counts.latency.map(|latency| latency.mean_ns as f64 / 1e6),
            cores: Some(1.0),
            server_busy_percent: Some(percent(self.server_cpu_ns, self.window_ns)),
            // What waits for its core has work.
            busy_percent: Some(busy + self.client_busy_percent),
            ..RunFigures::default()
        }
    }

    /// Returns the fault if something else ran on the server's core for too long. A share that is no number is too long.
    fn disturbance(&self, scenario: &Scenario, spec: &ServerSpec, settings: RunSettings) -> Option<String> {
        let is_beyond = |percent: f64, most: f64| percent.is_nan() || percent > most;
        let has_churn = scenario.requests_per_connection > 0 || spec.requests_max == Some(1);
        if spec.pool {
            let most = if has_churn { FOREIGN_PERCENT_MAX_CHURN } else { FOREIGN_PERCENT_MAX };
            let percent = percent(self.foreign_ns, self.window_ns);
            return is_beyond(percent, most)
                .then(|| format!("others ran on its core {percent:.1} % of the time"));
        }
        let most = match has_churn {
            true if scenario.requests_per_connection <= 1 => WAIT_PERCENT_MAX_CLOSE,
            true => WAIT_PERCENT_MAX_CHURN,
            false => WAIT_PERCENT_MAX,
        };
        let percent = percent(self.server_wait_ns, self.window_ns);
        is_beyond(percent, settings.wait_percent.unwrap_or(most))
            .then(|| format!("waited for its CPU {percent:.1} % of the time"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod broken_peer;

    use super::*;
    use crate::client::Latency;
    use crate::{scenario, server};

    pub(crate) const SETTINGS: RunSettings = RunSettings {
        blocks: 16,
        seconds: 1,
        seed: 1,
        syscall_rounds: 5,
        instruction_rounds: 1,
        wait_percent: None,
    };

    /// Returns a block of 1,000 responses that counts.
    fn sound() -> Window {
        Window {
            counts: LoadCounts { responses: 1_000, duration_us: 2_000_000, ..LoadCounts::default() },
            response_bytes: 150,
            response_bytes_after: 150,
            server_cpu_ns: 5_000_000,
            server_wait_ns: 1_000_000,
            window_ns: 2_000_000_000,
            client_busy_percent: 60.0,
            ..Window::default()
        }
    }

    /// Returns the faults of a sound block after a change.
    fn faults(scenario: &str, server: &str, change: &dyn Fn(&mut Window)) -> Vec<String> {
        let mut window = sound();
        change(&mut window);
        let scenario = scenario::find(scenario).expect("a scenario");
        window.faults(scenario, server::find(server, scenario).expect("a server"), SETTINGS)
    }

    #[test]
    fn every_wrong_count_is_a_fault() {
        type Change = fn(&mut Window);
        let errors = &["1 socket errors or timeouts"];
        let cases: [(&str, Change, &[&str]); 11] = [
            (
                "1k",
                |it| (it.counts.status_errors, it.counts.length_errors) = (2, 1),
                &["3 responses with an unexpected status, length or content"],
            ),
            ("1k", |it| it.counts.read_errors = 1, errors),
            ("1k", |it| it.counts.timeouts = 1, errors),
            ("1k", |it| it.counts.responses = 0, &["no responses"]),
            ("1k", |it| it.server_cpu_ns = 0, &["no CPU time counted"]),
            ("1k", |it| it.response_bytes_after = 151, &["a response of 150 bytes before, of 151 after"]),
            ("1k", |it| it.server_wait_ns = 21_000_000, &["waited for its CPU 1.1 % of the time"]),
            ("1k-churn", |it| it.server_wait_ns = 59_000_000, &[]),
            (
                "1k",
                |it| it.client_busy_percent = 20.0,
                &["20.3 % of the time busy, server and client together, at least 40 expected"],
            ),
            (
                "1k-lone",
                |it| it.counts.latency = Some(Latency { mean_ns: 9, ..Latency::default() }),
                &["0 requests in flight on average, at least 0.5 expected"],
            ),
            (
                "1k",
                |it| (it.window_ns, it.server_wait_ns) = (0, 0),
                &["waited for its CPU NaN % of the time", "inf % CPU, at most 105 expected"],
            ),
        ];
        for (scenario, change, expected) in cases {
            assert_eq!(faults(scenario, "nginx", &change), expected);
        }
        let sent = |requests, responses: u64| {
            let counts = LoadCounts { requests, responses, ..sound().counts };
            faults("1k-rate", "nginx", &|it| it.counts = counts)
        };
        assert_eq!(sent(5_000, 5_000), [""; 0]);
        assert_eq!(sent(4_999, 4_999), ["4999 of 5000 due requests were sent"]);
        let handshakes = |scenario, full_handshakes, resumed_handshakes| {
            let counts = LoadCounts { full_handshakes, resumed_handshakes, ..sound().counts };
            faults(scenario, "nginx", &|it| it.counts = counts).len()
        };
        let pairs = [(1_000, 0), (0, 1_000), (999, 1)];
        assert_eq!(pairs.map(|(full, resumed)| handshakes("tls-full", full, resumed)), [0, 1, 1]);
        assert_eq!(pairs.map(|(full, resumed)| handshakes("tls-resumed", full, resumed)), [1, 0, 1]);
        let ready = |ready| faults("order", "kinds", &|it| it.handlers_ready_a_turn = Some(ready)).len();
        assert_eq!([100.0, 99.0, f64::NAN].map(ready), [0, 1, 1]);
        // Where threads wait for one another, only the time of others counts.
        let foreign =
            |ns| faults("1k", "servedir", &|it| (it.server_wait_ns, it.foreign_ns) = (6_000_000_000, ns));
        assert_eq!(foreign(99_000_000), [""; 0]);
        assert_eq!(foreign(101_000_000), ["others ran on its core 5.1 % of the time"]);
        let waiting = |ns| faults("plaintext-close", "hyper", &|it| it.server_wait_ns = ns);
        assert_eq!(waiting(119_000_000), [""; 0]);
        assert_eq!(waiting(122_000_000), ["waited for its CPU 6.1 % of the time"]);
        let ending = |ns| faults("1k-churn", "servedir", &|it| it.foreign_ns = ns);
        assert_eq!(ending(200_000_000), [""; 0]);
        assert_eq!(ending(302_000_000), ["others ran on its core 15.1 % of the time"]);
    }

    #[test]
    fn a_busy_client_voids_responses_per_second_but_not_cpu_per_response() {
        let figures = |client_busy_percent, scenario| {
            let window = Window { client_busy_percent, ..sound() };
            window.figures(scenario::find(scenario).expect("a scenario"))
        };
        assert_eq!(figures(50.0, "1k")["responses_per_s"], 500.0);
        let bound = figures(90.0, "1k");
        assert!(!bound.contains_key("responses_per_s") && bound["cpu_us"] == 5.0);
        assert!(figures(95.0, "1k-rate").contains_key("responses_per_s"));
    }

    #[test]
    fn parses_the_counts_of_perf_and_of_the_example() {
        let counted = "# started on Sat\n\n421337,,raw_syscalls:sys_enter,5000000,100.00,,\n";
        assert_eq!(parse_system_calls(counted), Some(421_337));
        assert_eq!(parse_system_calls("<not counted>,,raw_syscalls:sys_enter,0,0.00,,\n"), None);
        assert_eq!(parse_ready("kinds turns=15 ready=2010\n"), Some((15.0, 2010.0)));
        assert_eq!(parse_ready("kinds turns=15"), None);
    }
}
