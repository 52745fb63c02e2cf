//! `cargo xtask sanitize`: the tests of the crate `tasks`, whose unsafe code no wire reaches, under an interpreter or a sanitizer.

use std::process::{Command, ExitCode};

/// The crate whose tests are run.
const PACKAGE: &str = "shearwater-tasks";
/// Exit status when nothing could be run.
const UNUSABLE: u8 = 2;
/// Orders of the threads' steps that the interpreter may be asked to try.
const SEEDS_MAX: u32 = 100_000;

/// Arguments of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the tests are run under [default: all, one after another]
    kind: Option<Kind>,
    /// With miri: how many orders of the threads' steps are tried
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=i64::from(SEEDS_MAX)))]
    seeds: u32,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// The interpreter: undefined behaviour of slots, wakers and timers, and races under weak memory. It can't switch stacks
    Miri,
    /// ThreadSanitizer: races of wakers. It doesn't follow a thread to another stack
    Thread,
    /// AddressSanitizer: everything, coroutines and overflows too
    Address,
}

/// Runs the tests on the nightly compiler. Exit status 0: nothing found, 1: something found, 2: nothing could be run.
pub(crate) fn run(args: &Args) -> ExitCode {
    let kinds = args.kind.map_or_else(|| vec![Kind::Miri, Kind::Thread, Kind::Address], |kind| vec![kind]);
    for kind in kinds {
        let commands = match commands(kind, args.seeds) {
            Ok(commands) => commands,
            Err(error) => return unusable(&error),
        };
        for mut command in commands {
            match command.status() {
                Ok(status) if status.success() => {}
                Ok(_) => {
                    eprintln!(
                        "sanitize: FOUND something, see above; or a component is missing: rustup +nightly component add miri rust-src"
                    );
                    return ExitCode::FAILURE;
                }
                Err(error) => return unusable(&format!("cargo can't be started: {error}")),
            }
        }
    }
    println!("sanitize: nothing found");
    ExitCode::SUCCESS
}

fn unusable(error: &str) -> ExitCode {
    eprintln!("sanitize: {error}");
    ExitCode::from(UNUSABLE)
}

fn commands(kind: Kind, seeds: u32) -> Result<Vec<Command>, String> {
    match kind {
        Kind::Miri => {
            let mut all = cargo(&["miri", "test"]);
            all.args(["--lib", "--test", "it"]);
            let mut threads = cargo(&["miri", "test"]);
            threads.args(["--test", "it", "threads::"]);
            threads.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{seeds}"));
            Ok(vec![all, threads])
        }
        Kind::Thread => {
            let mut command = sanitized("thread")?;
            command.args(["--lib", "--test", "it", "--", "--skip", "coroutines::", "--skip", "stacks::"]);
            Ok(vec![command])
        }
        Kind::Address => {
            let mut command = sanitized("address")?;
            command.args(["--lib", "--tests", "--features", "corosensei/sanitizer"]);
            // Faults are the tests' own: some of them look at what becomes of one.
            command.env("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_abort=0");
            Ok(vec![command])
        }
    }
}

/// `cargo test` with everything, the standard library too, built for a sanitizer.
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

/// The system that the compiler runs on: a sanitizer is asked for by target.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").args(["+nightly", "-vV"]).output();
    let output = output.map_err(|error| format!("rustc can't be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "there is no nightly compiler: rustup toolchain install nightly".to_owned())
}
