//! Group `hostile`: attackers in waves against a server with one worker, beside normal clients whose responses are compared.
//!
//! The server has a core of its own; attackers and normal clients share another. Three times, the normal clients (64 keep-alive
//! connections, 640 requests a second) are alone for 2 s, then a wave of attackers arrives. The last wave is watched until all attackers
//! are disconnected. After a rest, nothing of them may be left.

mod attacks;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use testkit::random::Rng;
use testkit::{Client, Program, free_address, process};

use self::attacks::{
    ATTACKS, AUTHORIZATION, Attack, EARLY_ERRORS, HTPASSWD, Host, LARGE_BYTES, PAGE, STAFF_PAGE,
    refused_and_reading_late,
};
use crate::context::CaseContext;
use crate::context::TestCase;
use crate::crowd::{Crowd, CrowdMember, PER_ADDRESS};
use crate::expected::ExactResponse;
use crate::normal::{NormalClients, OtherRequest, Seen, set_scheduling};
use crate::report::{CaseReport, shown};
use crate::usage::{Usage, core_percent, wait_until};

const NORMAL_CLIENTS: u32 = 64;
/// Time between two requests of a normal client: all of them together send 640 a second.
const INTERVAL: Duration = Duration::from_millis(100);
const WAVES: u8 = 3;
/// Time without attackers before each wave, after a pause in which the last wave's rest is over.
const QUIET: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);
/// Duration of each wave but the last.
const WAVE: Duration = Duration::from_secs(3);
/// The connections of a wave are opened evenly over this time.
const SPREAD: Duration = Duration::from_millis(2_500);
/// Normal clients aren't measured in their first moments.
const WARM_UP: Duration = Duration::from_millis(1500);
/// CPU of other programs, beyond which no latency is valid, per cent of a core.
const OTHERS_CPU_MAX: f64 = 20.0;
/// CPU of a server without clients, per cent of a core.
const REST_CPU_MAX: f64 = 1.0;
const FEW_DESCRIPTORS: u32 = 1_024;
/// The server's limit on bodies in the case of early errors, bytes.
const EARLY_BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Open connections in that case.
const EARLY_OPEN: u64 = 20;

/// Returns a case for each attack.
pub(crate) fn cases() -> impl Iterator<Item = TestCase> {
    ATTACKS.iter().zip(0..).map(|(attack, number)| TestCase {
        group: "hostile",
        name: attack.name.to_owned(),
        about: format!("{} clients that {}", attack.count, attack.about),
        run: Box::new(move |context, report| {
            let run = || run(&context.with_one_worker(), attack, number, report);
            // On a thread of its own: its core and priority end with it.
            thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)))
        }),
    })
}

/// A stretch of time with the CPU that was used in it, per cent of a core.
#[derive(Debug, Clone, Copy)]
struct CpuStretch {
    start: Instant,
    end: Instant,
    server: Option<f64>,
    others: Option<f64>,
}

impl CpuStretch {
    fn measure<T>(server: &Program, work: impl FnOnce() -> T) -> (Self, T) {
        let others = || {
            let ours = process::cpu_ns(server.pid())? + process::own_cpu_ns();
            Some(process::machine_cpu_ns()?.saturating_sub(ours))
        };
        let (server_before, others_before, start) = (process::cpu_ns(server.pid()), others(), Instant::now());
        let done = work();
        let end = Instant::now();
        let server = core_percent(server_before, process::cpu_ns(server.pid()), end - start);
        (Self { start, end, server, others: core_percent(others_before, others(), end - start) }, done)
    }

    fn contains(&self, moment: Instant) -> bool {
        (self.start..self.end).contains(&moment)
    }
}

/// Mean CPU over some stretches; `None` if one wasn't measured.
fn mean(stretches: &[CpuStretch], of: impl Fn(&CpuStretch) -> Option<f64>) -> Option<f64> {
    let seconds = |stretch: &CpuStretch| (stretch.end - stretch.start).as_secs_f64();
    let weighted = stretches.iter().map(|stretch| Some(of(stretch)? * seconds(stretch)));
    Some(weighted.sum::<Option<f64>>()? / stretches.iter().map(seconds).sum::<f64>())
}

/// The latency that 99 in 100 requests of these stretches did not exceed, microseconds.
fn p99_us(samples: &[(Instant, Duration)], stretches: &[CpuStretch]) -> Option<f64> {
    let inside = |moment| stretches.iter().any(|stretch| stretch.contains(moment));
    let inside = samples.iter().filter(|(moment, _)| inside(*moment));
    let mut sorted: Vec<Duration> = inside.map(|(_, latency)| *latency).collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).map(|latency| latency.as_secs_f64() * 1e6)
}

/// Starts the attacked server on the first core, and moves this thread to the last one. Returns the attackers' address last.
fn start(
    context: &CaseContext<'_>,
    host: Host,
) -> Result<(Program, &'static str, ExactResponse, SocketAddr)> {
    context.write_file("public/page.txt", &testkit::random::bytes(&mut context.random(0), 1024))?;
    let large = context.write_file("public/large.bin", b"")?;
    std::fs::File::options().write(true).open(large)?.set_len(LARGE_BYTES)?;
    let cores = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
    let ends = cores.next().zip(cores.next_back());
    let pin = |core: Option<usize>| -> Result<()> {
        let Some(core) = core else { return Ok(()) };
        let mut set = CpuSet::new();
        set.set(core);
        Ok(sched_setaffinity(None, &set)?)
    };
    pin(ends.map(|(first, _)| first))?;
    let root = context.folder.join("public");
    let mut attacked = None;
    let (server, target) = match host {
        Host::Files => (context.serve(&root)?, PAGE),
        Host::Tls => {
            let (plain, by_tls) = (free_address()?, free_address()?);
            attacked = Some(by_tls);
            let config = format!(
                "[[listen]]\naddress = \"{plain}\"\n[[listen]]\naddress = \"{by_tls}\"\ntls = true\n\
                 [[site]]\nroot = \"public\"\ntls = \"self-signed\"\nhttp = \"serve\"\n"
            );
            let file = context.write_file("site.toml", config.as_bytes())?;
            let mut command = Command::new(&context.programs.server);
            command.arg("--config").arg(file);
            (context.start_configured(command, plain)?, PAGE)
        }
        Host::Passwords => {
            let address = free_address()?;
            let page = context.write_file("public/staff/page.txt", b"for staff\n")?;
            // A file that was just written has another tag for a while.
            let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
            std::fs::File::options().write(true).open(page)?.set_modified(long_ago)?;
            context.write_file("users", HTPASSWD.as_bytes())?;
            let config = format!(
                "[[listen]]\naddress = \"{address}\"\n[[site]]\nroot = \"public\"\n\
                 [[site.route]]\npath = \"/staff/*\"\nbasic_auth = \"users\"\n"
            );
            let mut command = Command::new(&context.programs.server);
            command.arg("--config").arg(context.write_file("site.toml", config.as_bytes())?);
            (context.start_configured(command, address)?, PAGE)
        }
        Host::Handlers => (context.example(&[])?, "/"),
        Host::FewDescriptors => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("ulimit -n {FEW_DESCRIPTORS} && exec \"$0\" \"$@\""));
            command.arg(&context.programs.server).arg(root);
            (context.start_server(command)?, PAGE)
        }
    };
    pin(ends.map(|(_, last)| last))?;
    let response = Client::connect(server.address())?.get(target)?;
    let mut expected = ExactResponse::new(&response).map_err(anyhow::Error::msg)?;
    if host == Host::FewDescriptors {
        // A full server ends connections, so that others get a turn.
        expected = expected.or_closing();
    }
    let attacked = attacked.unwrap_or_else(|| server.address());
    Ok((server, target, expected, attacked))
}

fn run(
    context: &CaseContext<'_>,
    attack: &'static Attack,
    number: u8,
    report: &mut CaseReport,
) -> Result<()> {
    let (mut server, target, expected, attacked) = start(context, attack.host)?;
    thread::sleep(PAUSE);
    let before = Usage::of(&server);
    let watch = context.seconds(16, 75);
    let (count, interval, address) = (NORMAL_CLIENTS, INTERVAL, server.address());
    let verified = match attack.host {
        Host::Passwords => Some(Client::connect(address)?.request("GET", STAFF_PAGE, &[AUTHORIZATION])?),
        _ => None,
    };
    let verified =
        verified.map(|response| ExactResponse::new(&response).map_err(anyhow::Error::msg)).transpose()?;
    let also = verified.as_ref().map(|expected| OtherRequest {
        target: STAFF_PAGE,
        headers: &[AUTHORIZATION],
        expected,
    });
    let normal = NormalClients { count, interval, address, target, expected: &expected, also };
    let (waves, seen) = normal.beside(|| send_waves(context, (attack, attacked), number, &server, watch));
    let (quiet, beside, ends) = waves?;
    report_normal_clients(context, report, attack, &seen, [&quiet, &beside]);
    let [quiet_cpu, attacked_cpu] = [&quiet, &beside].map(|stretches| mean(stretches, |one| one.server));
    let extra = attacked_cpu.zip(quiet_cpu).map(|(attacked, quiet)| attacked - quiet);
    report.at_most("CPU for the attackers", extra, attack.cpu_max, "% of a core");
    let peak = process::rss_peak_kib(server.pid());
    report.growth("memory, peak growth", before.rss_kib, peak, attack.peak_mib_max * 1024.0, "KiB");
    ends.report(report, attack.ends, attack.count, watch);
    report_rest(context, report, &server, (attack, attacked), before);
    let response = Client::connect(server.address()).and_then(|mut client| client.get(target));
    let same = response.is_ok_and(|response| expected.equals(&response));
    report.check("responds after the attack", same, "true", same);
    report.stop(&mut server);
    Ok(())
}

/// Sends all waves. Returns the stretches without attackers, those with them, and the ends of the last wave.
fn send_waves(
    context: &CaseContext<'_>,
    attack: (&Attack, SocketAddr),
    number: u8,
    server: &Program,
    watch: Duration,
) -> Result<(Vec<CpuStretch>, Vec<CpuStretch>, Ends)> {
    thread::sleep(WARM_UP);
    let (mut quiet, mut attacked, mut ends) = (Vec::new(), Vec::new(), Ends::default());
    for wave in 0..WAVES {
        thread::sleep(PAUSE);
        quiet.push(CpuStretch::measure(server, || thread::sleep(QUIET)).0);
        let until = Instant::now() + if wave + 1 == WAVES { watch } else { WAVE };
        let every = SPREAD.div_f64(attack.0.count as f64);
        // One address may try few passwords.
        let per_address = if attack.0.host == Host::Passwords { 20 } else { PER_ADDRESS };
        let crowd =
            Crowd { open_max: u64::MAX, every, until, network: [127, 20 + number, wave], per_address };
        let random = context.random(u64::from(wave) + 1);
        let (stretch, ended) = CpuStretch::measure(server, || send(crowd, attack, random));
        attacked.push(stretch);
        ends = ended?;
    }
    Ok((quiet, attacked, ends))
}

/// Sends a wave on a thread of its own, because the priority stays low.
fn send(crowd: Crowd, (attack, address): (&Attack, SocketAddr), mut random: Rng) -> Result<Ends> {
    let run = move || {
        // The normal clients' latency must be the server's doing, not that of attackers on the same core.
        set_scheduling("--idle", "0");
        let mut next =
            |number| (number < attack.count).then(|| (address, (attack.script)(&mut random, number)));
        let mut ends = Ends::default();
        crowd.run(&mut next, &mut |member, how| ends.add(member, how))?;
        Ok(ends)
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Refuses requests whose clients send on for a while, and only then read: the whole response and the orderly end.
pub(crate) fn early_errors(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut server = context.example(&[("SHEARWATER_BODY_MAX", EARLY_BODY_BYTES_MAX)])?;
    let count = context.count(240, 1200);
    let time = Duration::from_millis(context.count(300, 1000));
    let (every, until) = (Duration::ZERO, Instant::now() + Duration::from_secs(120));
    let crowd = Crowd { open_max: EARLY_OPEN, every, until, network: [127, 19, 0], per_address: PER_ADDRESS };
    let mut next =
        |number| (number < count).then(|| (server.address(), refused_and_reading_late(number, time)));
    let mut ends = Ends::default();
    crowd.run(&mut next, &mut |member, how| ends.add(member, how))?;
    ends.report(report, EARLY_ERRORS, count, Duration::MAX);
    report.stop(&mut server);
    Ok(())
}

fn report_normal_clients(
    context: &CaseContext<'_>,
    report: &mut CaseReport,
    attack: &Attack,
    seen: &Seen,
    [quiet, attacked]: [&[CpuStretch]; 2],
) {
    report.none("normal requests without the right response", &seen.errors);
    let p99 = [quiet, attacked].map(|stretches| p99_us(&seen.samples, stretches));
    report.note("p99 alone, us", shown(p99[0].map(f64::round)));
    report.note("p99 beside attackers, us", shown(p99[1].map(f64::round)));
    report.note(
        "lateness of the clients' own thread, p99, us",
        shown(p99_us(&seen.lateness, attacked).map(f64::round)),
    );
    let growth = p99[0].zip(p99[1]).map_or(f64::INFINITY, |(quiet, attacked)| attacked / quiet);
    let others = mean(&[quiet, attacked].concat(), |stretch| stretch.others);
    // Beside other programs no latency is valid. Only a full run insists on a quiet machine.
    if context.args.full || others.is_some_and(|others| others <= OTHERS_CPU_MAX) {
        report.at_most("CPU of other programs", others, OTHERS_CPU_MAX, "% of a core");
        report.at_most("p99 beside attackers / alone", growth, attack.p99_growth_max, "x");
    } else {
        report.note("p99 not valid: CPU of other programs, % of a core", shown(others.map(f64::round)));
    }
}

/// Ends of connections: the first response's status and how it ended, with a count and the latest time after the connect.
#[derive(Debug, Default)]
struct Ends(BTreeMap<String, (u64, Duration)>);

impl Ends {
    fn add(&mut self, member: &CrowdMember, how: &str) {
        let status = member.responses.status.map_or(String::new(), |status| format!("{status} "));
        let (count, last) = self.0.entry(format!("{status}{how}")).or_default();
        *count += 1;
        *last = member.opened.elapsed().max(*last);
    }

    /// Compares the ends with the permitted ones. A run that watches for a shorter time doesn't see the late ends.
    fn report(&self, report: &mut CaseReport, permitted: &[(&str, f64)], count: u64, watch: Duration) {
        let latest = permitted.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        let mut wrong = Vec::new();
        for (end, (count, last)) in &self.0 {
            report.note(format!("ended: {end}"), format!("{count}, the last after {last:.1?}"));
            let is_permitted =
                permitted.iter().any(|(name, seconds)| name == end && last.as_secs_f64() <= *seconds);
            let is_unwatched = end.ends_with("held") && watch.as_secs_f64() < latest;
            if !is_permitted && !is_unwatched {
                wrong.push(format!("{count} {end}, the last after {last:.1?}"));
            }
        }
        report.none(format!("ends other than {permitted:?}"), &wrong);
        report.equal("attackers", self.0.values().map(|(count, _)| count).sum(), count);
    }
}

/// Checks what is left of an attack after a rest.
fn report_rest(
    context: &CaseContext<'_>,
    report: &mut CaseReport,
    server: &Program,
    (attack, address): (&Attack, SocketAddr),
    before: Usage,
) {
    let rest = Duration::from_secs(context.count(5, 20));
    wait_until(Duration::from_secs(15), || process::tcp_connections(address.port()) == Some(0));
    let (stretch, ()) = CpuStretch::measure(server, || thread::sleep(rest));
    let after = Usage::of(server);
    report.at_most("CPU at rest", stretch.server, REST_CPU_MAX, "% of a core");
    report.growth("memory left, growth", before.rss_kib, after.rss_kib, attack.left_mib_max * 1024.0, "KiB");
    // A worker watches the files that it sends from their descriptors, from the first of them on.
    report.growth("descriptors left, growth", before.descriptors, after.descriptors, 1.0, "");
    let connections = process::tcp_connections(address.port());
    report.at_most("connections left", connections.map(|count| count as f64), 0.0, "");
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{ATTACKS, CpuStretch, Ends, p99_us};
    use crate::report::CaseReport;

    #[test]
    fn only_samples_inside_the_stretches_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stretch = |from, to| CpuStretch { start: at(from), end: at(to), server: None, others: None };
        let mut samples: Vec<_> = (1..=100).map(|n| (at(n), Duration::from_micros(n))).collect();
        samples.push((at(500), Duration::from_secs(1)));
        assert_eq!(p99_us(&samples, &[stretch(0, 400)]).map(f64::round), Some(99.0));
        assert_eq!(p99_us(&samples, &[stretch(450, 600)]), Some(1e6));
        assert_eq!(p99_us(&samples, &[]), None);
    }

    #[test]
    fn other_ends_late_ends_and_missing_attackers_fail() {
        let attack = ATTACKS.iter().find(|attack| attack.name == "slow-heads").unwrap();
        let passed = |ends: &[(&str, u64, u64)], watch| {
            let ends = ends
                .iter()
                .map(|(end, count, last)| ((*end).to_owned(), (*count, Duration::from_secs(*last))));
            let mut report = CaseReport::default();
            let watch = Duration::from_secs(watch);
            Ends(ends.collect()).report(&mut report, attack.ends, attack.count, watch);
            report.passed()
        };
        assert!(passed(&[("408 closed", 1000, 12)], 16));
        assert!(!passed(&[("408 closed", 999, 12)], 16));
        assert!(!passed(&[("408 closed", 1000, 14)], 16));
        assert!(!passed(&[("408 closed", 999, 12), ("reset", 1, 1)], 16));
        assert!(!passed(&[("408 closed", 999, 12), ("held", 1, 16)], 16));
        assert!(passed(&[("408 closed", 999, 8), ("held", 1, 8)], 8));
    }
}
