//! Group `programs`: programs of other people read a served folder: package managers, mirrors, downloaders, file systems.
//!
//! `e2e/data/programs.sh` has a try for each. Their packages are installed where there is `apt-get`, and what is missing is skipped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::context::CaseContext;
use crate::report::CaseReport;
use crate::runner::workspace;

const SCRIPT: &str = include_str!("../data/programs.sh");
const SCRIPT_PATH: &str = "e2e/data/programs.sh";
/// Begins the line that describes a try.
const TRY: &str = "#: ";
/// Exit status of a try that can't run on this machine.
const SKIPPED: i32 = 77;
/// Exit status of `timeout` itself if it can't run the script.
const NOT_STARTED: i32 = 125;
/// Time limit of one program in seconds. A server that confuses one may have it wait or loop for ever.
const SECONDS_MAX: u32 = 60;
/// Bytes of a failed program's output that are shown, from its end.
const SHOWN_BYTES_MAX: usize = 300;

/// A program and what it needs.
pub(crate) struct Try<'a> {
    pub(crate) name: &'a str,
    packages: &'a str,
    commands: &'a str,
}

impl<'a> Try<'a> {
    /// Returns all tries of a script.
    pub(crate) fn all(script: &'a str) -> Vec<Self> {
        script.lines().filter_map(Self::parse).filter(|program| program.name != "TRY").collect()
    }

    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.strip_prefix(TRY)?.split(" | ");
        Some(Self { name: parts.next()?, packages: parts.next()?, commands: parts.next()? })
    }

    /// Returns the first of its commands that isn't installed.
    pub(crate) fn missing(&self) -> Option<&'a str> {
        let is_missing = |name: &&str| {
            let found = Command::new("sh").args(["-c", "command -v -- \"$0\" > /dev/null", name]).status();
            !found.is_ok_and(|status| status.success())
        };
        self.commands.split(' ').find(is_missing)
    }
}

/// Installs the packages of all tries. One that is unknown doesn't prevent the others.
fn install(tries: &[Try<'_>]) {
    for program in tries.iter().filter(|program| program.missing().is_some()) {
        println!("installing {} for {}", program.packages, program.name);
        let mut command = Command::new("apt-get");
        command.args(["install", "-qq", "-y", "--no-install-recommends"]).args(program.packages.split(' '));
        let output = command.env("DEBIAN_FRONTEND", "noninteractive").output();
        if !output.is_ok_and(|output| output.status.success()) {
            println!("apt-get can't install {}", program.packages);
        }
    }
}

/// Runs every program against a folder of its own.
pub(crate) fn read_a_folder(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let tries = Try::all(SCRIPT);
    install(&tries);
    run_all(&tries, report, |report, name| run(context, report, name))
}

/// Runs every try whose commands are installed. `run` returns its exit status and the end of its output.
pub(crate) fn run_all(
    tries: &[Try<'_>],
    report: &mut CaseReport,
    mut run: impl FnMut(&mut CaseReport, &str) -> Result<(Option<i32>, String)>,
) -> Result<()> {
    let mut runs = 0;
    for program in tries {
        if let Some(command) = program.missing() {
            report.note(program.name, format!("skipped: {command} isn't installed"));
            continue;
        }
        let (status, output) = run(report, program.name)?;
        if status == Some(SKIPPED) {
            report.note(program.name, "skipped: this machine lacks what it needs");
            continue;
        }
        runs += 1;
        let measured = if status == Some(0) { "exit status: 0".to_owned() } else { output };
        report.check(program.name, measured, "exit status: 0", status == Some(0));
    }
    report.check("programs", runs, ">= 1", runs >= 1);
    Ok(())
}

/// Runs a try of a script by `timeout`, in a folder. Returns its exit status and the end of its output.
pub(crate) fn run_script(
    script: &str,
    name: &str,
    folder: &Path,
    log: &Path,
    variables: &[(&str, &OsStr)],
) -> Result<(Option<i32>, String)> {
    let file = File::create(log)?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &SECONDS_MAX.to_string(), "bash"]).arg(workspace().join(script));
    command.arg(name).current_dir(folder).envs(variables.iter().copied());
    let status = command.stderr(file.try_clone()?).stdout(file).status().context("timeout")?;
    let output = fs::read(log)?;
    let shown = output.len().saturating_sub(SHOWN_BYTES_MAX);
    ensure!(status.code() != Some(NOT_STARTED), "timeout: {}", String::from_utf8_lossy(&output));
    let output = String::from_utf8_lossy(&output[shown..]).replace('\n', " ");
    Ok((status.code(), format!("{status}: {output}")))
}

/// Runs one program against a server of its own. Returns its exit status and the end of its output.
fn run(context: &CaseContext<'_>, report: &mut CaseReport, name: &str) -> Result<(Option<i32>, String)> {
    let (site, folder) = (context.folder.join(name).join("site"), context.folder.join(name).join("work"));
    fs::create_dir_all(&site)?;
    fs::create_dir(&folder)?;
    let mut server = Command::new(&context.programs.server);
    server.arg(&site).arg("--listing");
    let mut server = context.start_server(server)?;
    let log = context.folder.join(format!("{name}.log"));
    let url = format!("http://{}", server.address());
    let variables = [("SITE", site.as_os_str()), ("URL", url.as_ref())];
    let result = run_script(SCRIPT_PATH, name, &folder, &log, &variables);
    report.stop(&mut server);
    result
}
