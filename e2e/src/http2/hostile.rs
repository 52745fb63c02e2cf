//! Group `hostile-http2`: attackers over HTTP/2 beside clients of HTTP/1.1 and of HTTP/2, whose responses are compared.
//!
//! Attackers connect in clear, again and again until the time is over, from a process of their own: in one process the others would
//! wait for locks of its allocator, which attackers hold at the lowest priority. One half of the other clients uses HTTP/1.1 in clear, the
//! other one HTTP/2 over TLS, each over connections that they keep.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::panic::resume_unwind;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use testkit::http2::frame::{self, Frame};
use testkit::http2::hpack::Decoder;
use testkit::http2::{PREFACE, hpack};
use testkit::{Client, Error, process, random};

use super::attacks::{ATTACKS, Attack, LARGE, PAGE, SETTINGS};
use super::{Origins, client_tls};
use crate::context::{CaseContext, TestCase, in_threads};
use crate::expected::ExactResponse;
use crate::normal::{NormalClients, Seen, set_scheduling};
use crate::report::{CaseReport, shown};
use crate::usage::{Usage, core_percent};

const LARGE_BYTES: u64 = 256 << 20;
/// Other clients of each kind, each with a request per [`INTERVAL`].
const NEIGHBOURS: u32 = 4;
const INTERVAL: Duration = Duration::from_millis(20);
/// Time in which the other clients are alone.
const QUIET: Duration = Duration::from_secs(1);
/// Connections of all attackers: fewer than there are ports of clients.
const CONNECTIONS_MAX: u64 = 20_000;
/// Time for a server to close a connection after its GOAWAY and the client's FIN.
const CLOSE_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);
/// Time for connections to be closed after the attack.
const SETTLE: Duration = Duration::from_secs(3);
/// Descriptors of the server's own that an attack may leave: of the large file while it is hashed, and of the watch for
/// changes of files.
const LEFT_DESCRIPTORS_MAX: f64 = 2.0;
/// Memory that an attack may leave, KiB.
const LEFT_KIB_MAX: f64 = 8.0 * 1024.0;

/// Returns a case for each attack.
pub(crate) fn cases() -> impl Iterator<Item = TestCase> {
    ATTACKS.iter().map(|attack| TestCase {
        group: "hostile-http2",
        name: attack.name.to_owned(),
        about: format!("clients that {}", attack.about),
        run: Box::new(move |context, report| run(context, attack, report)),
    })
}

/// Counts of what happened to the attackers' connections and streams.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Outcomes(BTreeMap<String, u64>);

impl Outcomes {
    fn add(&mut self, outcome: impl Into<String>) {
        *self.0.entry(outcome.into()).or_default() += 1;
    }

    fn report(&self, report: &mut CaseReport, attack: &Attack) {
        for (outcome, count) in &self.0 {
            let is_expected = attack.outcomes.contains(&outcome.as_str());
            // A client that sends on after a GOAWAY loses it, and the time ends in the middle of a connection.
            let is_expected = is_expected || outcome == RESET || outcome == UNFINISHED;
            let bound = if is_expected { "" } else { "= 0" };
            report.check(format!("attackers: {outcome}"), count, bound, is_expected);
        }
        let first = attack.outcomes.first().copied().unwrap_or_default();
        let count = self.0.get(first).copied().unwrap_or(0);
        report.check(format!("attackers with {first}"), count, ">= 1", count >= 1);
    }
}

const UNFINISHED: &str = "unfinished";
const RESET: &str = "reset";

/// A connection of an attacker.
struct Attacker<'a> {
    attack: &'a Attack,
    socket: TcpStream,
    unsent: Vec<u8>,
    received: Vec<u8>,
    decoder: Decoder,
    go_away: Option<u32>,
    /// The server takes no more.
    is_cut: bool,
}

/// The progress of a connection in a step.
#[derive(PartialEq)]
enum Progress {
    Some,
    None,
    Over(&'static str),
}

impl<'a> Attacker<'a> {
    fn connect(attack: &'a Attack, address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let unsent = [PREFACE, &Frame::settings(attack.settings).encode(), &(attack.opening)()].concat();
        let decoder = Decoder::new(hpack::TABLE_BYTES);
        Ok(Self { attack, socket, unsent, received: Vec::new(), decoder, go_away: None, is_cut: false })
    }

    /// Sends pieces until the connection or the time ends, and counts what happens.
    fn run(mut self, until: Instant, outcomes: &mut Outcomes) {
        let (mut number, mut due) = (0, Instant::now());
        loop {
            let now = Instant::now();
            if now >= until {
                return outcomes.add(UNFINISHED);
            }
            if self.unsent.is_empty() && now >= due && !self.is_cut {
                self.unsent = (self.attack.piece)(number);
                (number, due) = (number + 1, now + self.attack.every);
            }
            let sent = self.send();
            let is_reading = self.attack.reads || self.is_cut;
            let read = if is_reading { self.receive(outcomes) } else { Progress::None };
            if let Progress::Over(end) = read {
                return outcomes.add(end);
            }
            if let Some(code) = self.go_away {
                return outcomes.add(format!("GOAWAY {}{}", name_of(code), self.end()));
            }
            if !sent && read == Progress::None {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Returns true if something was sent.
    fn send(&mut self) -> bool {
        if self.unsent.is_empty() || self.is_cut {
            return false;
        }
        match self.socket.write(&self.unsent) {
            Ok(length) => {
                self.unsent.drain(..length);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            // What the server sent before can still be read.
            Err(_) => {
                self.is_cut = true;
                true
            }
        }
    }

    fn receive(&mut self, outcomes: &mut Outcomes) -> Progress {
        let mut room = [0; 16 * 1024];
        match self.socket.read(&mut room) {
            // A write that fails takes the reset from the read.
            Ok(0) if self.is_cut => return Progress::Over(RESET),
            Ok(0) => return Progress::Over("closed"),
            Ok(length) => self.received.extend_from_slice(&room[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::None,
            Err(_) => return Progress::Over(RESET),
        }
        while let Some(frame) = Frame::take(&mut self.received) {
            match frame.kind {
                frame::GOAWAY => self.go_away = frame.number(4),
                frame::RST_STREAM => {
                    outcomes.add(format!("RST_STREAM {}", frame.number(0).map_or("", name_of)));
                }
                frame::HEADERS => match self.decoder.decode(&frame.payload).as_deref() {
                    Ok([(_, status), ..]) => outcomes.add(status.as_str()),
                    _ => outcomes.add("a wrong header block"),
                },
                _ => {}
            }
        }
        Progress::Some
    }

    /// Ends the connection after a GOAWAY. Returns what is wrong with the server's end.
    fn end(mut self) -> &'static str {
        // A server that has reset the connection has ended it, too.
        let _ = self.socket.shutdown(Shutdown::Write);
        let deadline = Instant::now() + CLOSE_MAX;
        while Instant::now() < deadline {
            match self.receive(&mut Outcomes::default()) {
                Progress::Over(_) => return "",
                Progress::Some => {}
                Progress::None => thread::sleep(PAUSE),
            }
        }
        ", but not closed"
    }
}

/// Returns the name of an error code (RFC 9113 section 7).
fn name_of(code: u32) -> &'static str {
    match code {
        0 => "NO_ERROR",
        1 => "PROTOCOL_ERROR",
        2 => "INTERNAL_ERROR",
        3 => "FLOW_CONTROL_ERROR",
        5 => "STREAM_CLOSED",
        6 => "FRAME_SIZE_ERROR",
        7 => "REFUSED_STREAM",
        8 => "CANCEL",
        9 => "COMPRESSION_ERROR",
        11 => "ENHANCE_YOUR_CALM",
        _ => "another code",
    }
}

/// Attackers of one kind, the arguments of their process.
#[derive(Debug, Args)]
pub(crate) struct Attackers {
    name: String,
    address: SocketAddr,
    count: u64,
    millis: u64,
}

/// Outcomes of connections, and their number.
#[derive(Debug, Deserialize, Serialize)]
struct Attacked {
    outcomes: Outcomes,
    connections: u64,
}

impl Attackers {
    /// Attacks, and prints what happened.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let attack = ATTACKS.iter().find(|attack| attack.name == self.name).context("no such attack")?;
        let attacked = run_attack(self.address, attack, self.count, Duration::from_millis(self.millis));
        println!("{}", serde_json::to_string(&attacked)?);
        Ok(ExitCode::SUCCESS)
    }

    /// Attacks in another process.
    fn start(&self) -> Result<Attacked> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["http2-attackers", &self.name]).arg(self.address.to_string());
        command.args([self.count, self.millis].map(|number| number.to_string()));
        let output = command.stderr(Stdio::inherit()).output().context("starting the attackers")?;
        ensure!(output.status.success(), "the attackers failed: {}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// Attacks on so many threads.
fn run_attack(address: SocketAddr, attack: &Attack, count: u64, time: Duration) -> Attacked {
    let until = Instant::now() + time;
    let connections_max = CONNECTIONS_MAX / count;
    let interval = time.div_f64(connections_max as f64);
    let each = in_threads(count, |_| {
        // The others' latency must be the server's doing, not that of attackers on the same core.
        set_scheduling("--idle", "0");
        let (mut outcomes, mut connections) = (Outcomes::default(), 0);
        while connections < connections_max && Instant::now() < until {
            connections += 1;
            let due = Instant::now() + interval;
            match Attacker::connect(attack, address) {
                Ok(attacker) => attacker.run(until, &mut outcomes),
                Err(error) => outcomes.add(format!("not connected: {error}")),
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        (outcomes, connections)
    });
    let mut all = Attacked { outcomes: Outcomes::default(), connections: 0 };
    for (outcomes, connections) in each {
        all.connections += connections;
        let counts = &mut all.outcomes.0;
        outcomes.0.into_iter().for_each(|(outcome, count)| *counts.entry(outcome).or_default() += count);
    }
    all
}

/// Clients of both versions of HTTP.
struct Neighbours<'a> {
    origins: Origins,
    http1: NormalClients<'a>,
    page: &'a [u8],
}

impl Neighbours<'_> {
    /// Does `work` while they send requests. Returns what those of HTTP/1.1 and of HTTP/2 saw.
    fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, [Seen; 2]) {
        let stop = &AtomicBool::new(false);
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..NEIGHBOURS).map(|number| scope.spawn(move || self.run_http2(number, stop))).collect();
            let (done, http1) = self.http1.beside(work);
            stop.store(true, Ordering::Relaxed);
            let mut http2 = Seen::default();
            for thread in threads {
                let seen = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                http2.samples.extend(seen.samples);
                http2.errors.extend(seen.errors);
            }
            (done, [http1, http2])
        })
    }

    fn run_http2(&self, number: u32, stop: &AtomicBool) -> Seen {
        set_scheduling("--fifo", "1");
        let mut seen = Seen::default();
        if let Err(error) = self.request_until(number, stop, &mut seen) {
            seen.errors.push(format!("HTTP/2: {error}"));
        }
        seen
    }

    /// Requests the page over one connection.
    fn request_until(&self, number: u32, stop: &AtomicBool, seen: &mut Seen) -> Result<(), Error> {
        let mut client = self.origins.connect_by_tls(&client_tls()?)?;
        let mut due = Instant::now() + INTERVAL / NEIGHBOURS * number;
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let stream = client.send("GET", PAGE, &[], b"")?;
            let response = client.response(stream)?;
            if response.status != 200 || response.body != self.page {
                return Err(Error::Malformed(format!("a wrong response: {response:?}")));
            }
            seen.samples.push((due, due.elapsed()));
            due += INTERVAL;
        }
        Ok(())
    }
}

/// The latency that 99 in 100 requests did not exceed, microseconds.
fn p99_us(seen: &Seen) -> Option<f64> {
    let mut sorted: Vec<Duration> = seen.samples.iter().map(|(_, latency)| *latency).collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).map(|latency| (latency.as_secs_f64() * 1e6).round())
}

fn run(context: &CaseContext<'_>, attacked: &Attack, report: &mut CaseReport) -> Result<()> {
    let context = context.with_one_worker();
    let page = random::bytes(&mut context.random(0), 1024);
    context.write_file(&format!("public{PAGE}"), &page)?;
    let large = context.write_file(&format!("public{LARGE}"), b"")?;
    std::fs::File::options().write(true).open(large)?.set_len(LARGE_BYTES)?;
    let origins = Origins::new()?;
    let mut server = origins.serve(&context, SETTINGS)?;
    let expected =
        ExactResponse::new(&Client::connect(origins.clear)?.get(PAGE)?).map_err(anyhow::Error::msg)?;
    let http1 = NormalClients {
        count: NEIGHBOURS,
        interval: INTERVAL,
        address: origins.clear,
        target: PAGE,
        expected: &expected,
        also: None,
    };
    let neighbours = Neighbours { origins, http1, page: &page };
    let ((), alone) = neighbours.beside(|| thread::sleep(QUIET));
    let (before, cpu, begun) = (Usage::of(&server), process::cpu_ns(server.pid()), Instant::now());
    let attackers = Attackers {
        name: attacked.name.to_owned(),
        address: origins.clear,
        count: context.count(8, 64),
        millis: context.seconds(4, 30).as_millis() as u64,
    };
    let (done, beside) = neighbours.beside(|| attackers.start());
    let Attacked { outcomes, connections } = done?;

    report.note("attackers, and their connections", format!("{}, {connections}", attackers.count));
    outcomes.report(report, attacked);
    let cpu = core_percent(cpu, process::cpu_ns(server.pid()), begun.elapsed());
    report.note("CPU of the server, % of a core", shown(cpu.map(f64::round)));
    for (version, [alone, beside]) in ["HTTP/1.1", "HTTP/2"].into_iter().zip(pairs(&alone, &beside)) {
        report.note(format!("{version}: requests beside attackers"), beside.samples.len());
        report.note(format!("{version}: p99 alone, us"), shown(p99_us(alone)));
        report.note(format!("{version}: p99 beside attackers, us"), shown(p99_us(beside)));
        report.none(format!("{version}: errors alone"), &alone.errors);
        report.none(format!("{version}: errors beside attackers"), &beside.errors);
    }
    let peak = process::rss_peak_kib(server.pid());
    report.growth("memory, peak growth", before.rss_kib, peak, attacked.peak_mib_max * 1024.0, "KiB");
    let after = Usage::settled(&server, before, SETTLE);
    report.growth("descriptors, growth", before.descriptors, after.descriptors, LEFT_DESCRIPTORS_MAX, "");
    report.growth("memory left, growth", before.rss_kib, after.rss_kib, LEFT_KIB_MAX, "KiB");
    let response = Client::connect(origins.clear).and_then(|mut client| client.get(PAGE));
    let same = response.is_ok_and(|response| expected.equals(&response));
    report.check("responds after the attack", same, "true", same);
    report.stop(&mut server);
    Ok(())
}

fn pairs<'a>(alone: &'a [Seen; 2], beside: &'a [Seen; 2]) -> impl Iterator<Item = [&'a Seen; 2]> {
    alone.iter().zip(beside).map(|(alone, beside)| [alone, beside])
}
