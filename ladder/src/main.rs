//! `cargo ladder`: eleven small servers, from naive to fast, that differ in one idea each. `ladder/README.md` explains them.

mod measure;
mod report;
mod rules;
mod rungs;
mod sys;
mod wire;

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::process::{self, ExitCode};
use std::thread;

use clap::{Parser, Subcommand};
use measure::{MeasureArgs, ReportArgs};
use rungs::{RUNGS, Rung};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Eleven small servers, from naive to fast, that differ in one idea each
///
/// Each sends the same bytes and has the same limits, so that a measured difference is the idea's. `ladder/README.md` explains
/// what each one does and why.
#[derive(Debug, Parser)]
#[command(
    name = "ladder",
    bin_name = "cargo ladder",
    after_help = "\
Examples:
  cargo ladder list                              all rungs with their ideas
  cargo ladder run 1                             the naive server; try: curl -i http://127.0.0.1:8080/
  cargo ladder run io-uring --listen [::1]:9000
  diff ladder/src/rungs/07_no_repetition.rs ladder/src/rungs/08_cores.rs
  cargo ladder measure                           all rungs by the lab, about 20 minutes; again after a kill: it continues
  cargo ladder report                            what each step is worth: a page, and the figures of ladder/README.md"
)]
struct LadderArgs {
    #[command(subcommand)]
    command: LadderCommand,
}

#[derive(Debug, Subcommand)]
enum LadderCommand {
    /// List the rungs with their ideas
    List,
    /// Start a rung; Ctrl-C ends it
    Run {
        /// Number or name, as in `cargo ladder list`
        #[arg(value_parser = rung)]
        rung: usize,
        /// Address and port to listen on
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
        listen: SocketAddr,
        /// End when standard input does, in order: a build that records a profile writes it then
        #[arg(long, hide = true)]
        until_eof: bool,
    },
    /// Measure all rungs, the null servers and the engine by the lab
    Measure(MeasureArgs),
    /// Render the measurement as a page, and write its figures into ladder/README.md
    Report(ReportArgs),
}

fn main() -> ExitCode {
    match LadderArgs::parse().command {
        LadderCommand::List => {
            for (index, Rung { name, idea, .. }) in RUNGS.iter().enumerate() {
                println!("{:2}  {name:13}  {idea}", index + 1);
            }
            ExitCode::SUCCESS
        }
        LadderCommand::Run { rung, listen, until_eof } => {
            if until_eof {
                thread::spawn(|| {
                    drop(io::copy(&mut io::stdin(), &mut io::sink()));
                    process::exit(0);
                });
            }
            run(rung, listen)
        }
        LadderCommand::Measure(args) => exit_code(measure::measure(&args)),
        LadderCommand::Report(args) => exit_code(measure::report(&args)),
    }
}

fn exit_code(result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(index: usize, address: SocketAddr) -> ExitCode {
    let rung = &RUNGS[index];
    eprintln!("starting rung {} ({}) on http://{address}/", index + 1, rung.name);
    let Err(error) = start(rung, address);
    eprintln!("error: rung {} ({}) on {address}: {error}", index + 1, rung.name);
    let help = match error.kind() {
        ErrorKind::AddrInUse => "end the other server, or choose another port: --listen 127.0.0.1:8081",
        ErrorKind::AddrNotAvailable => "choose an address of this machine: --listen 127.0.0.1:8080",
        ErrorKind::PermissionDenied => "choose a port above 1023: --listen 127.0.0.1:8080",
        _ if rung.name == "io-uring" => "io_uring needs Linux 6.1 and a container that allows it",
        _ if rung.name == "guided" => {
            "the messages above say what its build lacks; rung 10 needs no such build"
        }
        _ => "try another rung, see `cargo ladder list`",
    };
    eprintln!("help: {help}");
    ExitCode::FAILURE
}

/// Serves until it fails.
fn start(rung: &Rung, address: SocketAddr) -> io::Result<Infallible> {
    // Listeners with SO_REUSEPORT would share the port with another rung.
    drop(TcpListener::bind(address)?);
    sys::raise_descriptor_limit()?;
    (rung.serve)(address)
}

/// Returns the index of a rung by its number or name.
fn rung(text: &str) -> Result<usize, String> {
    let by_name = RUNGS.iter().position(|rung| rung.name == text);
    let by_number = text.parse().ok().and_then(|number: usize| number.checked_sub(1));
    let found = by_name.or(by_number.filter(|&index| index < RUNGS.len()));
    found.ok_or_else(|| {
        format!("expected a number from 1 to {} or a name\nhelp: `cargo ladder list` shows them", RUNGS.len())
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let example = "help: for instance 127.0.0.1:8080 or [::1]:8080";
    match text.parse::<SocketAddr>() {
        // Rungs with several listeners would get a port for each.
        Ok(address) if address.port() == 0 => Err(format!("expected a port from 1 to 65535\n{example}")),
        address => address.map_err(|_| format!("expected an IP address and a port\n{example}")),
    }
}
