//! `cargo xtask fuzz` and `cargo xtask sanitize`: the commands that need a nightly compiler.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Bounds of the fuzzer: bytes of an input, seconds of a run, MiB of the process.
const BOUNDS: [&str; 3] = ["-max_len=1024", "-timeout=10", "-rss_limit_mb=2048"];
/// Targets without the address sanitizer, many times as fast. The only unsafe code they reach is the scanner of `http1`,
/// and other targets run that under it.
const UNSANITIZED: &[&str] = &["engine"];
/// Longest run of a target, in minutes.
const MINUTES_MAX: u64 = 7 * 24 * 60;
/// The crate that is sanitized: its unsafe code is not reachable by a fuzzer of bytes.
const PACKAGE: &str = "shearwater-tasks";
/// Bound on `--seeds`.
const SEEDS_MAX: u32 = 100_000;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct FuzzArgs {
    /// One of fuzz/fuzz_targets [default: all, one after another]
    target: Option<String>,
    /// Minutes for each target
    #[arg(long, value_name = "MINUTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MINUTES_MAX))]
    minutes: u64,
}

/// Runs the targets with seeds, a dictionary and bounds. Returns true if nothing was found; a failing input is kept.
pub(crate) fn fuzz(args: &FuzzArgs, root: &Path) -> Result<bool> {
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let (fuzz, built) = (root.join("fuzz"), root.join(target_dir).join("fuzz"));
    let mut targets = Vec::new();
    for folder in fs::read_dir(fuzz.join("seeds"))? {
        targets.push(folder?.file_name().to_string_lossy().into_owned());
    }
    targets.sort();
    if let Some(chosen) = &args.target {
        if !targets.contains(chosen) {
            bail!("no target `{chosen}`; the targets are {}", targets.join(", "));
        }
        targets.retain(|target| target == chosen);
    }
    for target in targets {
        let (corpus, found) = (built.join("corpus").join(&target), built.join("found").join(&target));
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&found)?;
        let sanitizer = if UNSANITIZED.contains(&target.as_str()) { "none" } else { "address" };
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", "--sanitizer", sanitizer, "--fuzz-dir"]).arg(&fuzz);
        // The fuzzer writes to the first folder and reads both.
        command
            .arg("--target-dir")
            .arg(&built)
            .arg(&target)
            .arg(corpus)
            .arg(fuzz.join("seeds").join(&target));
        command.arg("--").arg(format!("-max_total_time={}", args.minutes * 60)).args(BOUNDS);
        command.arg("-print_final_stats=1").arg(format!("-dict={}", fuzz.join("http.dict").display()));
        command.arg(format!("-artifact_prefix={}", found.join("").display()));
        if !succeeds(&mut command)? {
            println!("fuzz: {target}: failed, see above; a failing input is in {}", found.display());
            let built = built.display();
            println!("help: shrink it with `cargo +nightly fuzz tmin --target-dir {built} {target} FILE`");
            println!("help: keep it as `fuzz/seeds/{target}/found-NAME`");
            return Ok(false);
        }
        println!("fuzz: {target}: nothing found in {} minutes", args.minutes);
    }
    Ok(true)
}

/// Arguments of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct SanitizeArgs {
    /// Interpreter or sanitizer [default: all, one after another]
    kind: Option<Sanitizer>,
    /// Miri: number of thread schedules
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=i64::from(SEEDS_MAX)))]
    seeds: u32,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Sanitizer {
    /// Miri: undefined behaviour in slots, wakers and timers, and races under weak memory. It can't switch stacks
    Miri,
    /// ThreadSanitizer: races of wakers. It can't follow a thread to another stack
    Thread,
    /// AddressSanitizer: all tests, with coroutines and stack overflows
    Address,
}

/// Runs the tests of `tasks`. Returns true if nothing was found.
pub(crate) fn sanitize(args: &SanitizeArgs) -> Result<bool> {
    let all = [Sanitizer::Miri, Sanitizer::Thread, Sanitizer::Address];
    for kind in args.kind.map_or(all.to_vec(), |kind| vec![kind]) {
        for mut command in commands(kind, args.seeds)? {
            if !succeeds(&mut command)? {
                eprintln!("error: a test failed, see above");
                eprintln!("help: if a component is missing: `rustup +nightly component add miri rust-src`");
                return Ok(false);
            }
        }
    }
    println!("sanitize: nothing found");
    Ok(true)
}

fn commands(kind: Sanitizer, seeds: u32) -> Result<Vec<Command>> {
    let cargo = |verb: &[&str]| {
        let mut command = Command::new("cargo");
        command.arg("+nightly").args(verb).args(["--package", PACKAGE]);
        command
    };
    // The crate and the standard library built for a sanitizer, which needs an explicit target.
    let sanitized = |sanitizer: &str| -> Result<Command> {
        let output = Command::new("rustc").args(["+nightly", "-vV"]).output().context("rustc")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("no nightly compiler; install it with `rustup toolchain install nightly`")?;
        let mut command = cargo(&["test", "-Zbuild-std", "--target", host]);
        command.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
        Ok(command)
    };
    match kind {
        Sanitizer::Miri => {
            let mut all = cargo(&["miri", "test"]);
            all.args(["--lib", "--test", "it"]);
            let mut wakes = cargo(&["miri", "test"]);
            wakes.args(["--test", "it", "wakes::"]);
            wakes.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{seeds}"));
            Ok(vec![all, wakes])
        }
        Sanitizer::Thread => {
            let mut command = sanitized("thread")?;
            command.args(["--lib", "--test", "it", "--", "--skip", "coroutines::"]);
            Ok(vec![command])
        }
        Sanitizer::Address => {
            let mut command = sanitized("address")?;
            command.args(["--lib", "--tests", "--features", "corosensei/sanitizer"]);
            // Some tests cause faults and check how they are handled.
            command.env("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_abort=0");
            Ok(vec![command])
        }
    }
}

fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(command.status().context("cargo could not be started")?.success())
}
