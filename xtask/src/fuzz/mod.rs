//! `cargo xtask fuzz`: lets cargo-fuzz run the targets, with the seeds, a dictionary and bounds, and everything it writes beneath the
//! build's target folder, where it is in nobody's way.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The longest input, in bytes: beyond it nothing new happens in any target.
const INPUT_BYTES_MAX: usize = 1024;
/// An input that takes longer, in seconds, counts as found.
const INPUT_SECONDS_MAX: u64 = 10;
/// An input that makes the process larger, in MiB, counts as found.
const PROCESS_MIB_MAX: usize = 2048;
/// Targets that run without the address sanitizer, many times as fast: all that is unsafe in what they reach is the scanner of `http1`,
/// and the others have that under it.
const UNSANITIZED: &[&str] = &["engine"];
/// The longest run of one target, in minutes.
const MINUTES_MAX: u64 = 7 * 24 * 60;
/// Exit status when there is nothing to run.
const UNUSABLE: u8 = 2;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One of fuzz/fuzz_targets [default: all, one after another]
    target: Option<String>,
    /// How long each target runs
    #[arg(long, value_name = "MINUTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MINUTES_MAX))]
    minutes: u64,
}

/// Runs the targets. Exit status 0: nothing found, 1: something found (its input is kept), 2: nothing could be run.
pub(crate) fn run(args: &Args) -> ExitCode {
    let places = Places::new();
    let targets = match places.targets(args.target.as_deref()) {
        Ok(targets) => targets,
        Err(error) => {
            eprintln!("fuzz: {error}");
            return ExitCode::from(UNUSABLE);
        }
    };
    for target in &targets {
        match places.run(target, args.minutes) {
            Ok(true) => println!("fuzz: {target}: nothing found in {} minutes", args.minutes),
            Ok(false) => {
                println!("fuzz: {target}: FOUND something, see above; {}", places.advice(target));
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("fuzz: {target}: {error}");
                return ExitCode::from(UNUSABLE);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Where things are read and written.
struct Places {
    /// The folder `fuzz` of the workspace.
    fuzz: PathBuf,
    /// What is built, collected and found.
    built: PathBuf,
}

impl Places {
    fn new() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().unwrap_or(here);
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
        Self { fuzz: root.join("fuzz"), built: root.join(target).join("fuzz") }
    }

    /// The target asked for, or all, in the order of their names.
    fn targets(&self, asked: Option<&str>) -> Result<Vec<String>, String> {
        let folder = self.fuzz.join("fuzz_targets");
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut names: Vec<String> =
            files.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        match asked {
            None if names.is_empty() => Err(format!("there are no targets in {}", folder.display())),
            None => Ok(names),
            Some(name) if names.iter().any(|known| known == name) => Ok(vec![name.to_owned()]),
            Some(name) => Err(format!("no target `{name}`: there are {}", names.join(", "))),
        }
    }

    /// What was collected for a target, or found.
    fn folder(&self, kind: &str, target: &str) -> PathBuf {
        self.built.join(kind).join(target)
    }

    /// Runs one target; gives whether nothing was found.
    fn run(&self, target: &str, minutes: u64) -> Result<bool, String> {
        let (corpus, found) = (self.folder("corpus", target), self.folder("found", target));
        for folder in [&corpus, &found] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let mut command = self.cargo_fuzz("run");
        let sanitizer = if UNSANITIZED.contains(&target) { "none" } else { "address" };
        command.args(["--sanitizer", sanitizer]);
        // The first folder is written to, the second only read.
        command.arg(target).arg(&corpus).arg(self.fuzz.join("seeds").join(target)).arg("--");
        command.arg(format!("-max_total_time={}", minutes * 60));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        command.arg(format!("-rss_limit_mb={PROCESS_MIB_MAX}"));
        command.arg("-print_final_stats=1");
        command.arg(option("-dict=", self.fuzz.join("http.dict").as_os_str()));
        command.arg(option("-artifact_prefix=", found.join("").as_os_str()));
        let status = command.status();
        status.map(|status| status.success()).map_err(|error| format!("cargo can't be started: {error}"))
    }

    /// `cargo fuzz` on the nightly compiler, which alone can build for a fuzzer.
    fn cargo_fuzz(&self, verb: &str) -> Command {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", verb, "--fuzz-dir"]).arg(&self.fuzz);
        command.arg("--target-dir").arg(&self.built);
        command
    }

    /// What to do with an input that was found.
    fn advice(&self, target: &str) -> String {
        let found = self.folder("found", target);
        format!(
            "the input is in {}. Make it smaller: cargo +nightly fuzz tmin --target-dir {} {target} FILE. \
            Keep it as fuzz/seeds/{target}/found-WHAT",
            found.display(),
            self.built.display()
        )
    }
}

fn option(name: &str, value: &OsStr) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}
