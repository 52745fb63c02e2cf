//! `cargo xtask sanitize`: runs the tests of the crate `tasks` under Miri, ThreadSanitizer and AddressSanitizer.

use std::process::{Command, ExitCode};

/// The crate under test: its unsafe code is not reachable by a fuzzer of bytes.
const PACKAGE: &str = "shearwater-tasks";
/// Exit status when nothing could be run.
const UNUSABLE: u8 = 2;
/// Bound on `--seeds`.
const SEEDS_MAX: u32 = 100_000;

/// Arguments of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Interpreter or sanitizer [default: all, one after another]
    kind: Option<Kind>,
    /// Miri: number of thread schedules
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=i64::from(SEEDS_MAX)))]
    seeds: u32,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// Miri: undefined behaviour in slots, wakers and timers, and races under weak memory. It can't switch stacks
    Miri,
    /// ThreadSanitizer: races of wakers. It can't follow a thread to another stack
    Thread,
    /// AddressSanitizer: all tests, with coroutines and stack overflows
    Address,
}

/// Runs the tests on the nightly compiler. Exit status 0: nothing found, 1: something found, 2: nothing could be run.
pub(crate) fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(true) => {
            println!("sanitize: nothing found");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            eprintln!("error: a test failed, see above");
            eprintln!("help: if a component is missing: `rustup +nightly component add miri rust-src`");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Returns true if all tests pass.
fn try_run(args: &Args) -> Result<bool, String> {
    let kinds = args.kind.map_or_else(|| vec![Kind::Miri, Kind::Thread, Kind::Address], |kind| vec![kind]);
    for kind in kinds {
        for mut command in commands(kind, args.seeds)? {
            let status = command.status().map_err(|error| format!("cargo could not be started: {error}"))?;
            if !status.success() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn commands(kind: Kind, seeds: u32) -> Result<Vec<Command>, String> {
    match kind {
        Kind::Miri => {
            let mut all = cargo(&["miri", "test"]);
            all.args(["--lib", "--test", "it"]);
            let mut wakes = cargo(&["miri", "test"]);
            wakes.args(["--test", "it", "wakes::"]);
            wakes.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{seeds}"));
            Ok(vec![all, wakes])
        }
        Kind::Thread => {
            let mut command = sanitized("thread")?;
            command.args(["--lib", "--test", "it", "--", "--skip", "coroutines::"]);
            Ok(vec![command])
        }
        Kind::Address => {
            let mut command = sanitized("address")?;
            command.args(["--lib", "--tests", "--features", "corosensei/sanitizer"]);
            // Some tests cause faults and check how they are handled.
            command.env("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_abort=0");
            Ok(vec![command])
        }
    }
}

/// Returns `cargo test` with the crate and the standard library built for a sanitizer.
fn sanitized(sanitizer: &str) -> Result<Command, String> {
    let mut command = cargo(&["test", "-Zbuild-std"]);
    command.args(["--target", &host()?]).env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
    Ok(command)
}

fn cargo(verb: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(verb).args(["--package", PACKAGE]);
    command
}

/// Returns the compiler's host triple: sanitizers need an explicit target.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").args(["+nightly", "-vV"]).output();
    let output = output.map_err(|error| format!("rustc could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "no nightly compiler; install it with `rustup toolchain install nightly`".to_owned())
}
