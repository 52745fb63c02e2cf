//! The verdict of each state of a server.

use shearwater::{MessageLevel, NOT_RELOADED, Totals};

use super::{CAPACITY_LIMITS, ROUTINE_LIMITS, judge};
use crate::certificates::Certificate;
use crate::document::{Level, ReloadOutcome, Verdict};
use crate::history::Second;
use crate::limits::FINDINGS_MAX;
use crate::metrics::{LogCounts, Readiness};
use crate::snapshot::{ServerFigures, Snapshot};

/// Time of the judgement: 1,000 s after the start, and since 1970.
const UPTIME: f64 = 1000.0;
const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

/// A server with five minutes of 200 requests a second.
struct Case {
    seconds: Vec<Second>,
    now: Snapshot,
}

impl Case {
    fn new() -> Self {
        let second = |ago: u32| Second {
            end: UPTIME - f64::from(ago),
            length: 1.0,
            requests: 200,
            ..Second::default()
        };
        let server = ServerFigures { has_tls: true, ..ServerFigures::default() };
        let mut now =
            Snapshot { uptime_seconds: UPTIME, now: NOW, server: Some(server), ..Snapshot::default() };
        now.readiness = Readiness::Serving;
        now.log = Some(LogCounts::default());
        (now.process.open_descriptors, now.process.descriptors_max) = (Some(100), Some(1000));
        Self { seconds: (0..300).rev().map(second).collect(), now }
    }

    /// Changes the second that ended so long ago.
    fn at(mut self, ago: usize, change: impl Fn(&mut Second)) -> Self {
        let index = self.seconds.len() - 1 - ago;
        change(&mut self.seconds[index]);
        self
    }

    fn now(mut self, change: impl Fn(&mut Snapshot)) -> Self {
        change(&mut self.now);
        self
    }

    fn message(self, ago: u64, level: MessageLevel, text: &str) -> Self {
        // The engine alone can make one.
        let control = shearwater::Control::new().0;
        control.keep_message(level, text);
        let mut message = control.messages().remove(0);
        message.unix_seconds = NOW - ago;
        self.now(|now| now.server.as_mut().expect("it serves").messages.push(message.clone()))
    }

    fn certificate(self, ends_in: i64, is_failing: bool) -> Self {
        let end = NOW.cast_signed() + ends_in;
        let validity = Some((NOW - 90 * DAY, end.cast_unsigned()));
        let certificate = Certificate { name: "a.example".to_owned(), source: "own", validity, is_failing };
        self.now(|now| now.certificates.push(certificate.clone()))
    }

    fn judge(&self) -> Verdict {
        judge(&self.seconds.iter().collect::<Vec<_>>(), &self.now, Some(200.0))
    }
}

fn errors(count: u64) -> impl Fn(&mut Second) {
    move |second| second.server_errors = count
}

fn hits(name: &'static str, count: u64) -> impl Fn(&mut Second) {
    move |second| second.limits_hit.push((name, count))
}

fn failing(second: &mut Second) {
    second.is_log_failing = true;
}

fn check(verdict: &Verdict, name: &str) -> (Level, String) {
    let check = verdict.checks.iter().find(|check| check.name == name).expect(name);
    (check.level, check.value.clone())
}

const FINE: &str = "Serving, 200 requests/s, nothing unusual.";

#[track_caller]
fn assert_headlines<const COUNT: usize>(cases: [(Case, Level, &str); COUNT]) {
    for (case, level, headline) in cases {
        let verdict = case.judge();
        assert_eq!((verdict.level, verdict.headline.as_str()), (level, headline), "{verdict:?}");
        assert_eq!(verdict.findings.is_empty(), level == Level::Ok);
    }
}

#[test]
fn headlines_say_what_was_counted() {
    use Level::{Notice, Ok, Trouble};
    assert_headlines([
        (Case::new(), Ok, FINE),
        (Case::new().at(9, |second| second.client_errors = 200), Ok, FINE),
        (
            Case::new().at(9, errors(1)),
            Notice,
            "< 0.1 % of the responses (1 of 12,000) were 5xx in the last minute.",
        ),
        (
            Case::new().at(9, errors(360)),
            Trouble,
            "3.0 % of the responses (360 of 12,000) were 5xx in the last minute.",
        ),
        (
            Case::new().at(59, errors(360)),
            Trouble,
            "3.0 % of the responses (360 of 12,000) were 5xx in the last minute.",
        ),
        (
            Case::new().at(75, errors(480)),
            Notice,
            "Ended 1 min 15 s ago: 4.0 % of the responses (480 of 12,000) were 5xx.",
        ),
        (Case::new().at(75, errors(1)), Ok, FINE),
        (
            Case::new().at(3, |second| second.faults[0] = 2),
            Trouble,
            "2 handlers panicked in the last minute.",
        ),
        (
            Case::new().at(3, |second| second.faults[2] = 1),
            Trouble,
            "1 file was cut short in the last minute.",
        ),
        (
            Case::new().at(3, |second| second.faults[3] = 1),
            Notice,
            "1 connection cut off in the last minute.",
        ),
        (
            Case::new().at(90, |second| second.faults[0] = 1),
            Notice,
            "Ended 1 min 30 s ago: 1 handler panicked.",
        ),
        (
            Case::new().at(3, hits("connections_max", 1)),
            Trouble,
            "The limit connections_max was reached 1 time in the last minute.",
        ),
        (
            Case::new().at(120, hits("calls_max", 7)),
            Notice,
            "Ended 2 min ago: The limit calls_max was reached 7 times.",
        ),
        (Case::new().at(3, hits("head_ms", 59)), Ok, FINE),
        (
            Case::new().at(3, hits("head_ms", 60)),
            Notice,
            "The limit head_ms was reached 60 times in the last minute.",
        ),
        (Case::new().at(120, hits("head_ms", 6000)), Ok, FINE),
        (Case::new().at(3, hits("idle_ms", 9000)), Ok, FINE),
    ]);
}

#[test]
fn headlines_say_the_state() {
    use Level::{Notice, Ok, Trouble};
    let worker = "worker 1: a handler has blocked it for 5000 ms or more; its other clients wait";
    assert_headlines([
        (
            Case::new().at(3, |second| second.log_dropped = 1500),
            Trouble,
            "1,500 lines of the access log were dropped in the last minute.",
        ),
        (
            Case::new()
                .at(1, failing)
                .at(0, failing)
                .now(|now| now.log.as_mut().expect("it has one").is_failing = true),
            Trouble,
            "The access log can't be written to for 2 s: lines wait.",
        ),
        (Case::new().at(40, failing), Notice, "Ended 40 s ago: the access log couldn't be written to."),
        (
            Case::new().now(|now| now.process.open_descriptors = Some(801)),
            Trouble,
            "80 % of the descriptors (801 of 1,000) are in use.",
        ),
        (Case::new().now(|now| now.process.open_descriptors = None), Ok, FINE),
        (Case::new().certificate(90 * 86_400, false), Ok, FINE),
        (Case::new().certificate(9 * 86_400, false), Notice, "The certificate of a.example ends in 9 d."),
        (Case::new().certificate(-1, false), Trouble, "The certificate of a.example has expired."),
        (
            Case::new().certificate(90 * 86_400, true),
            Notice,
            "The last order of a certificate for a.example failed.",
        ),
        (
            Case::new().message(4, MessageLevel::Error, "worker 2 has failed"),
            Trouble,
            "1 error was reported in the last minute: worker 2 has failed",
        ),
        (
            Case::new().message(64, MessageLevel::Error, "worker 2 has failed"),
            Notice,
            "Ended 1 min 4 s ago: an error was reported: worker 2 has failed.",
        ),
        (Case::new().message(400, MessageLevel::Error, "worker 2 has failed"), Ok, FINE),
        (Case::new().message(64, MessageLevel::Warning, worker), Ok, FINE),
        (
            Case::new().message(4, MessageLevel::Warning, worker),
            Notice,
            &format!("1 warning was reported in the last minute: {worker}"),
        ),
        (
            Case::new().now(|now| now.readiness = Readiness::Draining),
            Notice,
            "Draining: the server ends, 0 connections still open.",
        ),
        (
            Case::new().now(|now| now.readiness = Readiness::Starting),
            Notice,
            "Starting: no requests are taken yet.",
        ),
    ]);
}

#[test]
fn a_refused_reload_is_found_until_the_next_one() {
    let errors = "\nerror: unknown key `rot`\n --> site.toml:4:1\nhelp: did you mean `root`?\n";
    let refused = |now: &mut Snapshot| {
        now.configuration.last_outcome =
            Some(ReloadOutcome { unix_seconds: NOW - 7200, errors: Some(errors.to_owned()) });
    };
    let kept = format!("{NOT_RELOADED}\n{errors}");
    let verdict = Case::new().now(refused).message(5, MessageLevel::Error, &kept).judge();
    let expected = "The last reload was refused 2 h ago, and the configuration before it is served: site.toml:4:1: unknown key `rot`.";
    assert_eq!(
        (verdict.level, verdict.headline.as_str(), verdict.findings.len()),
        (Level::Notice, expected, 1)
    );
    assert_eq!(verdict.findings[0].since_unix_seconds, Some(NOW - 7200));
    assert_eq!(check(&verdict, "Reload"), (Level::Notice, "refused".to_owned()));
    let done = |now: &mut Snapshot| {
        now.configuration.last_outcome = Some(ReloadOutcome { unix_seconds: NOW - 5, errors: None });
    };
    let verdict = Case::new().now(done).judge();
    assert_eq!(
        (verdict.level, check(&verdict, "Reload")),
        (Level::Ok, (Level::Ok, "done 5 s ago".to_owned()))
    );
}

#[test]
fn the_worst_comes_first_and_what_has_ended_last() {
    let case =
        Case::new().at(100, errors(480)).at(2, |second| second.log_dropped = 1).certificate(86_400, false);
    let verdict = case.at(30, errors(1)).judge();
    let texts: Vec<&str> = verdict.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "1 line of the access log was dropped in the last minute.",
            "< 0.1 % of the responses (1 of 12,000) were 5xx in the last minute.",
            "The certificate of a.example ends in 1 d.",
            "Ended 1 min 40 s ago: 4.0 % of the responses (480 of 12,000) were 5xx.",
        ]
    );
    assert_eq!((verdict.level, verdict.state.as_str()), (Level::Trouble, "Serving, 200 requests/s."));
    let dropped = &verdict.findings[0];
    assert_eq!((dropped.since_unix_seconds, dropped.ended_unix_seconds), (Some(NOW - 3), None));
    assert_eq!(check(&verdict, "Log drops"), (Level::Trouble, "1".to_owned()));
    assert_eq!(check(&verdict, "TLS"), (Level::Notice, "1 d".to_owned()));
    assert_eq!(check(&verdict, "Reload"), (Level::Off, "–".to_owned()));
    let verdict = Case::new().at(100, errors(480)).at(2, |second| second.log_dropped = 1).judge();
    let ended = &verdict.findings[1];
    assert_eq!((ended.level, ended.ended_unix_seconds), (Level::Notice, Some(NOW - 100)));
    assert_eq!(check(&verdict, "5xx"), (Level::Ok, "0".to_owned()));
}

#[test]
fn the_beginning_is_before_the_last_pause_of_a_minute() {
    let case = Case::new().at(250, errors(200)).at(70, errors(200)).at(40, errors(200)).at(5, errors(200));
    assert_eq!(case.judge().findings[0].since_unix_seconds, Some(NOW - 71));
}

#[test]
fn a_young_history_says_how_long_it_is() {
    let mut case = Case::new().at(1, errors(300));
    case.seconds.drain(..290);
    assert_eq!(
        case.judge().headline,
        "15 % of the responses (300 of 2,000) were 5xx in the last 10 seconds."
    );
    case.seconds.drain(..9);
    assert_eq!(case.judge().level, Level::Ok);
    assert_eq!(judge(&[], &Snapshot::default(), None).headline, "Starting: no requests are taken yet.");
}

#[test]
fn lists_a_bounded_number_of_findings() {
    let case = (0..FINDINGS_MAX + 5).fold(Case::new(), |case, _| case.certificate(-1, false));
    let verdict = case.at(2, |second| second.log_dropped = 1).judge();
    assert_eq!((verdict.findings.len(), verdict.findings_left_out), (FINDINGS_MAX, 6));
    let long = Case::new().message(1, MessageLevel::Error, &"é\n".repeat(900)).judge();
    assert!(long.headline.len() < 400 && !long.headline.contains('\n'), "{}", long.headline);
}

#[test]
fn knows_only_limits_that_exist() {
    let totals = Totals::default();
    let names: Vec<&str> = totals.limits().map(|(name, _)| name).collect();
    for name in CAPACITY_LIMITS.iter().chain(&ROUTINE_LIMITS) {
        assert!(names.contains(name), "{name}");
    }
}
