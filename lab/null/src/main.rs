//! The null server: answers constant bytes to whatever comes, with as little as the kernel allows. It is the floor that
//! every real server is held against, so what it leaves out (parsing, limits, timeouts) is left out on purpose.
//!
//! One worker: the main thread. Without `--pipeline` every receive gets one answer, which is right for clients that wait
//! for each; with it, every blank line (CRLFCRLF) does.

// Only `uring.rs` and `buffers.rs` hold unsafe code: the ring's interface is memory shared with the kernel.
#![deny(unsafe_code)]

mod answer;
mod buffers;
mod epoll;
mod listen;
mod uring;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use answer::{ANSWER_BYTES_MAX, ANSWER_BYTES_MIN, Answer};

/// The smallest possible server, one worker
#[derive(Debug, Parser)]
#[command(name = "null-server", version)]
struct Args {
    /// How to wait for the kernel
    #[arg(long, value_enum)]
    driver: Driver,

    /// Address and port to listen on
    #[arg(long)]
    listen: SocketAddr,

    /// Length of one whole answer, head included
    #[arg(long, value_parser = clap::value_parser!(u32).range(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX))]
    bytes: u32,

    /// One answer per blank line instead of one per receive
    #[arg(long)]
    pipeline: bool,

    #[command(flatten)]
    ring: RingArgs,
}

/// What the shape of the ring can be measured by; epoll has none of it
#[derive(Debug, Clone, Copy, clap::Args)]
struct RingArgs {
    /// When the kernel runs what completed
    #[arg(long, value_enum, default_value_t = TaskRun::Defer)]
    taskrun: TaskRun,

    /// Completions that one enter waits for (at most a millisecond, if more than one)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    wait: u16,

    /// Length of one receive buffer
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=65_536))]
    buffer_bytes: u32,

    /// Receive buffers on offer, rounded up to a power of two: the kernel goes through all of them in turn
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..=i64::from(buffers::BUFFERS_MAX)))]
    buffers: u16,

    /// Who sends: the ring's next enter, or send(2) at once
    #[arg(long, value_enum, default_value_t = Sender::Ring)]
    send: Sender,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Driver {
    Epoll,
    Uring,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TaskRun {
    /// Only inside enter
    Defer,
    /// At the thread's next way into the kernel
    Coop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sender {
    Ring,
    Direct,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let answer = Answer::of(args.bytes as usize, args.pipeline);
    let served = listen::bind(args.listen).and_then(|listener| match args.driver {
        Driver::Epoll => epoll::serve(&listener, &answer),
        Driver::Uring => uring::serve(&listener, &answer, args.ring),
    });
    let Err(error) = served;
    eprintln!("null-server: {error}");
    ExitCode::FAILURE
}
