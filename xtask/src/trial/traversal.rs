//! Trial `traversal`: no spelling of a path, no link and no race leads out of the root, and the connection keeps its rules.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::hostile_paths::{Claim, Hostile, OK_BODY, lay_out, targets};
use crate::harness::answer::Fault;
use crate::harness::client::{Answer, Client, request};
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// An answer takes at most this long: a pipe must not hold anybody up.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How many requests race against the swapped folder at most.
const RACE_REQUESTS_MAX: u64 = 1_000_000;

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// How long a folder in the root is swapped with a link that leads out, seconds
    #[arg(long, default_value_t = 5)]
    race_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { race_seconds: 5 }
    }
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let canary = format!("canary-{:016x}", Random::stream(common.seed, 0).next());
    let missing = lay_out(&folder, &canary)?;
    let root = folder.path().join("public");
    let server = Server::serve_folder(common, &root, &folder)?;
    let hostile = targets(&folder);
    let mut report = Report::new();
    report.note("hostile targets", hostile.len() as u64);
    if !missing.is_empty() {
        report.note("could not be made here", missing.join(", "));
    }
    attack(&server, &hostile, &canary, &mut report);
    race(&server, &folder, &canary, options, &mut report)?;
    server.stop(&mut report)?;
    Ok(report)
}

/// What the attacks came to: examples of each kind of failure.
#[derive(Debug, Default)]
struct Findings {
    leaks: Vec<String>,
    statuses: Vec<String>,
    rules: Vec<String>,
    late: Vec<String>,
}

fn attack(server: &Server, hostile: &[Hostile], canary: &str, report: &mut Report) {
    let mut findings = Findings::default();
    for case in hostile {
        let shown = shortened(&String::from_utf8_lossy(&case.target).escape_debug().to_string());
        attack_once(server, case, canary, &shown, &mut findings);
    }
    let Findings { leaks, statuses, rules, late } = findings;
    for (what, found) in [
        ("answers that leak the canary", leaks),
        ("answers with another status than allowed", statuses),
        ("connections that broke the rules", rules),
        ("answers later than 2 s", late),
    ] {
        report.equal(what, found.len() as u64, 0);
        report.examples(what, &found);
    }
}

fn attack_once(server: &Server, case: &Hostile, canary: &str, shown: &str, findings: &mut Findings) {
    let started = Instant::now();
    let line = [b"GET ", case.target.as_slice(), b" HTTP/1.1\r\nHost: trial.test\r\n\r\n"].concat();
    let asked = Client::open(server.address()).and_then(|mut client| {
        let answer = client.exchange(&line, false)?;
        Ok((client, answer))
    });
    let (client, answer) = match asked {
        Ok(pair) => pair,
        Err(fault) => return findings.rules.push(format!("{shown}: {fault}")),
    };
    if started.elapsed() > ANSWER_WITHIN {
        findings.late.push(shown.to_owned());
    }
    if leaks(&answer, canary) {
        findings.leaks.push(format!("{shown}: status {}", answer.head.status));
    }
    if let Err(why) = status_allowed(case.claim, &answer) {
        findings.statuses.push(format!("{shown}: {why}"));
    }
    if let Err(why) = rules_hold(case.claim, client, &answer) {
        findings.rules.push(format!("{shown}: {why}"));
    }
}

/// True if the canary, or a field that the request tried to plant, is anywhere in the answer.
fn leaks(answer: &Answer, canary: &str) -> bool {
    let in_body = answer.body.windows(canary.len()).any(|window| window == canary.as_bytes());
    in_body || answer.head.text.contains(canary) || answer.head.field("x-injected").is_some()
}

fn status_allowed(claim: Claim, answer: &Answer) -> Result<(), String> {
    let status = answer.head.status;
    let refused = matches!(status, 400 | 403 | 404 | 421);
    let allowed = match claim {
        Claim::Refused => refused,
        Claim::Malformed => status == 400,
        Claim::Inside => refused || status == 200 || matches!(status, 301 | 308),
    };
    if !allowed {
        return Err(format!("status {status}"));
    }
    match answer.head.field("location") {
        Some(location) if location.starts_with("//") || location.starts_with("/\\") => {
            Err(format!("redirect to another host: {location}"))
        }
        _ => Ok(()),
    }
}

/// An answer that announces the end is followed by it; after any other the next request is answered. What is no request at all
/// gets the end in any case.
fn rules_hold(claim: Claim, mut client: Client, answer: &Answer) -> Result<(), String> {
    if answer.head.announces_close() {
        return client.end().map_err(|fault| format!("after Connection: close: {fault}"));
    }
    if claim == Claim::Malformed {
        return Err("kept open after a request that was none".to_owned());
    }
    let next = client.exchange(&request("GET", "/ok.txt"), false);
    match next {
        Ok(next) if next.head.status == 200 && next.body == OK_BODY => Ok(()),
        Ok(next) => Err(format!("the next request got status {}", next.head.status)),
        Err(fault) => Err(format!("the next request: {fault}")),
    }
}

/// A folder in the root is swapped with a link to the outside, over and over, while its file is asked for.
fn race(
    server: &Server,
    folder: &Folder,
    canary: &str,
    options: &Options,
    report: &mut Report,
) -> Outcome<()> {
    folder.write("public/swap/canary.txt", OK_BODY)?;
    let root = folder.path().join("public");
    std::os::unix::fs::symlink("../outside", root.join("swap-link")).during("making a symbolic link")?;
    let stop = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(options.race_seconds);
    let (swaps, seen) = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap_until(&root, &stop));
        let seen = ask_during_race(server, canary, deadline);
        stop.store(true, Ordering::Relaxed);
        (swapper.join(), seen)
    });
    let swaps = swaps.map_err(|_| "the swapping thread panicked")?.during("swapping a folder and a link")?;
    // Otherwise nobody raced.
    report.check("race: swaps", swaps, "> 0", swaps > 0);
    report.note("race: requests", seen.requests);
    report.check("race: of these 200", seen.served, "> 0", seen.served > 0);
    report.equal("race: answers that leak the canary", seen.leaked, 0);
    report.equal("race: other wrong answers", seen.wrong.len() as u64, 0);
    report.examples("wrong", &seen.wrong);
    Ok(())
}

fn swap_until(root: &Path, stop: &AtomicBool) -> std::io::Result<u64> {
    let path = |name: &str| root.join(name);
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        std::fs::rename(path("swap"), path("swap-spare"))?;
        std::fs::rename(path("swap-link"), path("swap"))?;
        std::fs::rename(path("swap"), path("swap-link"))?;
        std::fs::rename(path("swap-spare"), path("swap"))?;
        swaps += 1;
    }
    Ok(swaps)
}

#[derive(Debug, Default)]
struct Raced {
    requests: u64,
    served: u64,
    leaked: u64,
    wrong: Vec<String>,
}

fn ask_during_race(server: &Server, canary: &str, deadline: Instant) -> Raced {
    let mut raced = Raced::default();
    let mut kept: Option<Client> = None;
    while Instant::now() < deadline && raced.requests < RACE_REQUESTS_MAX && raced.wrong.len() < 100 {
        raced.requests += 1;
        match ask_once(server, &mut kept) {
            Ok(answer) if leaks(&answer, canary) => raced.leaked += 1,
            Ok(answer) if answer.head.status == 200 && answer.body == OK_BODY => raced.served += 1,
            Ok(answer) if matches!(answer.head.status, 403 | 404) => {}
            Ok(answer) => raced.wrong.push(format!("status {}", answer.head.status)),
            Err(fault) => raced.wrong.push(fault.to_string()),
        }
    }
    raced
}

fn ask_once(server: &Server, kept: &mut Option<Client>) -> Result<Answer, Fault> {
    let mut client = match kept.take() {
        Some(client) => client,
        None => Client::open(server.address())?,
    };
    let answer = client.exchange(&request("GET", "/swap/canary.txt"), false)?;
    if !answer.head.announces_close() {
        *kept = Some(client);
    }
    Ok(answer)
}

fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
