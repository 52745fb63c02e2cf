//! Blocks of a server that is wrong on purpose: each fault must be a reason for which its block doesn't count, or a verdict.
//!
//! Server and client are this test program again, as processes of their own.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::bench::{Bench, MeasuredRound, RunSettings, ServerSetup};
use crate::folder::RunFolder;
use crate::programs::OurPrograms;
use crate::series::tests::load_series;
use crate::server::ServerSpec;
use crate::{bar, block, client, process, scenario};

/// Arguments of this test program that run the lab's client with the load that follows.
pub(crate) const CLIENT: &[&str] =
    &["--ignored", "--exact", "--nocapture", "block::tests::broken_peer::runs_a_load"];
const SERVER: &str = "--ignored --exact --nocapture block::tests::broken_peer::serves";
/// Connections that are served wrongly, by their number: start and probe open a few, warm-up and window 64 each.
const ALL: &str = "0 1000000";
const WARM_UP: &str = "20 25";
const WINDOW: &str = "100 120";
/// One alone, which delays all others.
const ONE_IN_WINDOW: &str = "100 100";
const STALLED: &str = "of the time busy, server and client together";
const STALL: Duration = Duration::from_millis(800);

#[test]
#[ignore = "a process of the tests below"]
fn runs_a_load() {
    let load = std::env::args().next_back().expect("a file");
    let load = serde_json::from_str(&std::fs::read_to_string(load).expect("a file")).expect("a load");
    println!("\n{}", serde_json::to_string(&client::run(&load).expect("it runs")).expect("counts"));
}

#[test]
#[ignore = "a process of the tests below"]
fn serves() {
    let arguments: Vec<String> = std::env::args().collect();
    let [.., fault, first, last, address] = arguments.as_slice() else { panic!("{arguments:?}") };
    let wrong = first.parse().expect("a number")..=last.parse().expect("a number");
    let listener = TcpListener::bind(address).expect("it is free");
    let (mut open, mut accepted): (Vec<(usize, TcpStream)>, usize) = (Vec::new(), 0);
    let mut turn_ns = cpu_ns();
    loop {
        let mut waiting = vec![PollFd::new(&listener, PollFlags::IN)];
        waiting.extend(open.iter().map(|(_, stream)| PollFd::new(stream, PollFlags::IN)));
        poll(&mut waiting, None).expect("it waits");
        let ready: Vec<bool> = waiting.iter().map(|it| !it.revents().is_empty()).collect();
        let mut is_ready = ready[1..].iter();
        open.retain_mut(|(number, stream)| {
            let fault = if wrong.contains(number) { fault.as_str() } else { "none" };
            is_ready.next() != Some(&true) || respond(stream, fault).is_ok()
        });
        if ready[0] {
            let (stream, _) = listener.accept().expect("a client");
            stream.set_nodelay(true).expect("a socket");
            open.push((accepted, stream));
            accepted += 1;
        }
        let work_ns = cpu_ns() - turn_ns;
        while fault == "slow" && cpu_ns() - turn_ns < 4 * work_ns {}
        turn_ns = cpu_ns();
    }
}

/// Sends one response; an error ends the connection.
fn respond(stream: &mut TcpStream, fault: &str) -> io::Result<()> {
    if stream.read(&mut [0; 4096])? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let response: &[u8] = match fault {
        "longer" => b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, World!!",
        "shorter" => b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHello, World",
        "missing" => b"HTTP/1.1 404 No\r\nContent-Length: 13\r\n\r\nHello, World!",
        "cached" => b"HTTP/1.1 304 Not Modified\r\n\r\n",
        "other" => b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, Wurld!",
        "closed" => return Err(io::ErrorKind::ConnectionReset.into()),
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!",
    };
    if fault == "stalled" {
        std::thread::sleep(STALL);
    }
    stream.write_all(response)
}

fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Runs a block of the server with a fault on some connections. Other programs may disturb it.
fn run_block(folder: &RunFolder, fault: &str, connections: &str) -> MeasuredRound {
    let scenario = scenario::find("plaintext-varied").expect("a scenario");
    let program = std::env::current_exe().expect("this program");
    let spec = format!(
        "name = 'peer'\nprogram = '{}'\narguments = '{SERVER} {fault} {connections} {{address}}'",
        program.display()
    );
    let spec: ServerSpec = toml::from_str(&spec).expect("a server");
    let spec = Box::leak(Box::new(ServerSpec { file: "peer.toml".to_owned(), ..spec }));
    let settings = RunSettings { seconds: 1, wait_percent: Some(f64::INFINITY), ..RunSettings::default() };
    let bench = Bench { programs: &OurPrograms::default(), folder, settings, journal: None };
    let address = process::free_address().expect("a port");
    let setup = ServerSetup { bench: &bench, spec, scenario, address, workers: 1, null_bytes: 0 };
    block::run(&setup).unwrap_or_else(|reason| Err(reason).into())
}

#[test]
fn every_fault_of_a_server_has_a_reason_or_a_verdict() {
    let folder = RunFolder::create().expect("a folder");
    let cases = [
        ("longer", ALL, "probe: a body of 14 bytes, not the 13 expected"),
        ("missing", ALL, "probe: status 404"),
        ("cached", ALL, "probe: status 304"),
        ("other", ALL, "probe: the body differs"),
        ("closed", ALL, "127.0.0.1:"),
        ("other", WARM_UP, "warm-up: "),
        ("longer", WINDOW, "responses with an unexpected status, length or content"),
        ("shorter", WINDOW, "responses with an unexpected status, length or content"),
        ("closed", WINDOW, " socket errors or timeouts"),
        ("stalled", ONE_IN_WINDOW, STALLED),
        ("cached", WINDOW, "responses with an unexpected status, length or content"),
    ];
    for (fault, connections, reason) in cases {
        let faults = run_block(&folder, fault, connections).faults;
        assert!(faults.iter().any(|fault| fault.contains(reason)), "{fault}: {faults:?}");
    }
    // Four times the CPU time is wrong in no block: the comparison finds it, although a busy machine may take twice as long for
    // the other server. It stalls the load too.
    let rounds = |fault| -> Vec<MeasuredRound> {
        let mut round = run_block(&folder, fault, ALL);
        round.faults.retain(|fault| !fault.contains(STALLED));
        assert!(round.is_valid(), "{round:?}");
        vec![round; 3]
    };
    let row = bar::all().find(|row| row.name == "plaintext-epoll").expect("a row");
    let verdict = row.judge(&[load_series(rounds("none"), rounds("slow"))]);
    assert_eq!(verdict.verdict, "MISSED", "{verdict:?}");
    assert!(verdict.measured.is_some_and(|ratio| ratio.median > 1.5), "{verdict:?}");
}
