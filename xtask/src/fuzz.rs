//! `cargo xtask fuzz`: runs the fuzz targets by cargo-fuzz, with seeds, a dictionary and bounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Bounds of the fuzzer: bytes of an input, seconds of a run, MiB of the process.
const BOUNDS: [&str; 3] = ["-max_len=1024", "-timeout=10", "-rss_limit_mb=2048"];
/// Targets without the address sanitizer, many times as fast. The only unsafe code they reach is the scanner of `http1`,
/// and other targets run that under it.
const UNSANITIZED: &[&str] = &["engine"];
/// Longest run of a target, in minutes.
const MINUTES_MAX: u64 = 7 * 24 * 60;
/// Exit status when nothing could be run.
const UNUSABLE: u8 = 2;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One of fuzz/fuzz_targets [default: all, one after another]
    target: Option<String>,
    /// Minutes for each target
    #[arg(long, value_name = "MINUTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MINUTES_MAX))]
    minutes: u64,
}

/// Runs the targets. Exit status 0: nothing found, 1: a failing input found and kept, 2: nothing could be run.
pub(crate) fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

fn try_run(args: &Args) -> Result<bool, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the manifest lies in a folder of the checkout");
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let (fuzz, built) = (root.join("fuzz"), root.join(target_dir).join("fuzz"));
    for target in targets(&fuzz.join("fuzz_targets"), args.target.as_deref())? {
        let found = built.join("found").join(&target);
        if !fuzz_target(&fuzz, &built, &found, &target, args.minutes)? {
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

/// Returns the chosen target, or all.
fn targets(folder: &Path, chosen: Option<&str>) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    match chosen {
        None => Ok(names),
        Some(name) if names.iter().any(|known| known == name) => Ok(vec![name.to_owned()]),
        Some(name) => Err(format!("no target `{name}`; the targets are {}", names.join(", "))),
    }
}

/// Returns true if the target found nothing.
fn fuzz_target(fuzz: &Path, built: &Path, found: &Path, target: &str, minutes: u64) -> Result<bool, String> {
    let corpus = built.join("corpus").join(target);
    for folder in [&corpus, found] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let option = |name: &str, path: PathBuf| format!("{name}={}", path.display());
    let sanitizer = if UNSANITIZED.contains(&target) { "none" } else { "address" };
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz", "run", "--sanitizer", sanitizer, "--fuzz-dir"]).arg(fuzz);
    // The fuzzer writes to the first folder and reads both.
    command
        .arg("--target-dir")
        .arg(built)
        .arg(target)
        .arg(corpus)
        .arg(fuzz.join("seeds").join(target))
        .arg("--");
    command.arg(format!("-max_total_time={}", minutes * 60)).args(BOUNDS).arg("-print_final_stats=1");
    command.arg(option("-dict", fuzz.join("http.dict"))).arg(option("-artifact_prefix", found.join("")));
    let status = command.status().map_err(|error| format!("cargo could not be started: {error}"))?;
    Ok(status.success())
}
