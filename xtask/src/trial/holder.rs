//! The client process of `connections` and `suspended`: it holds many connections and does what its parent says, line by line.
//!
//! A process of its own because open sockets count against a limit per process. Lines in: `open`, `round` (or
//! its halves, `send` and `read`), `quit`; each is answered with one line, `done GOOD WRONG`, the number of connections on which it went well and on which it did not.

use std::io::{BufRead, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::ExitCode;

use socket2::{Domain, Protocol, Socket, Type};

use crate::harness::answer::Fault;
use crate::harness::client::{Client, request};
use crate::harness::process;

/// Settings of the client process.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Where the server listens
    #[arg(long)]
    address: SocketAddr,
    /// Connections to hold
    #[arg(long)]
    count: usize,
    /// The local address to connect from
    #[arg(long)]
    source: Option<IpAddr>,
    /// What is asked for
    #[arg(long)]
    target: String,
    /// How many body bytes the answer has
    #[arg(long)]
    length: usize,
}

/// Serves the parent until its end of input.
pub(super) fn run(options: &Options) -> ExitCode {
    process::raise_descriptor_limit();
    let mut held = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let done = match line.as_deref() {
            Ok("open") => open_all(options, &mut held),
            Ok("round") => round(options, &mut held),
            Ok("send") => send_all(options, &mut held),
            Ok("read") => read_all(options, &mut held),
            _ => break,
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "done {} {}", done.0, done.1).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn open_all(options: &Options, held: &mut Vec<Client>) -> (usize, usize) {
    let mut wrong = 0;
    for _ in 0..options.count {
        match open(options) {
            Ok(client) => held.push(client),
            Err(fault) => {
                complain(&mut wrong, "connect", &fault);
            }
        }
    }
    (held.len(), wrong)
}

fn open(options: &Options) -> Result<Client, Fault> {
    let Some(source) = options.source else {
        return Client::open(options.address);
    };
    let socket = Socket::new(Domain::for_address(options.address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&options.address.into())?;
    Client::over(TcpStream::from(socket))
}

/// Asks on every connection before it reads the first answer.
fn round(options: &Options, held: &mut Vec<Client>) -> (usize, usize) {
    let (_, unsent) = send_all(options, held);
    let (good, wrong) = read_all(options, held);
    (good, unsent + wrong)
}

/// Asks on every connection, and lets go of those on which that fails.
fn send_all(options: &Options, held: &mut Vec<Client>) -> (usize, usize) {
    let bytes = request("GET", &options.target);
    let mut wrong = 0;
    held.retain_mut(|client| match client.send(&bytes) {
        Ok(()) => true,
        Err(fault) => complain(&mut wrong, "send", &fault),
    });
    (held.len(), wrong)
}

/// Reads an answer from every connection, and lets go of those on which that fails.
fn read_all(options: &Options, held: &mut Vec<Client>) -> (usize, usize) {
    let mut wrong = 0;
    held.retain_mut(|client| match client.answer(false) {
        Ok(answer) if answer.head.status == 200 && answer.body.len() == options.length => true,
        Ok(answer) => complain(&mut wrong, "answer", &Fault::Malformed(answer.head.text)),
        Err(fault) => complain(&mut wrong, "answer", &fault),
    });
    (held.len(), wrong)
}

/// Counts a failure, and says what the first ones were on standard error. Always false: it didn't go well.
fn complain(wrong: &mut usize, what: &str, fault: &Fault) -> bool {
    const COMPLAINTS_MAX: usize = 5;
    *wrong += 1;
    if *wrong <= COMPLAINTS_MAX {
        eprintln!("connections: {what}: {fault}");
    }
    false
}
