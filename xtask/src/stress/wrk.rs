//! Runs `wrk` for one phase and waits for its end.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::figures::Figures;
use super::phase::Phase;
use crate::harness::folder::Folder;
use crate::harness::trouble::{During, Outcome};

/// The program, looked for in `PATH`.
const PROGRAM: &str = "wrk";

/// The version it tells, or `None` if there is none.
pub(super) fn version() -> Option<String> {
    let told = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let first = text.lines().next()?;
    first.starts_with("wrk ").then(|| first.split(" Copyright").next().unwrap_or(first).to_owned())
}

/// Runs one phase against `address`. `wrk` ends by itself, a moment after the phase's time.
pub(super) fn run(phase: &Phase, address: SocketAddr, seed: u64, folder: &Folder) -> Outcome<Figures> {
    let script = folder.write(&format!("{}.lua", phase.name), phase.script().as_bytes())?;
    let mut command = Command::new(PROGRAM);
    command.arg(format!("-t{}", phase.threads)).arg(format!("-c{}", phase.connections));
    command.arg(format!("-d{}s", phase.seconds)).args(["--timeout", &format!("{}s", phase.timeout_seconds)]);
    command.arg("-s").arg(script).arg(format!("http://{address}/"));
    command.args(["--", &seed.to_string()]).stdin(Stdio::null());
    let ended = command.output().during("starting wrk")?;
    let (output, errors) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if !ended.status.success() || !errors.trim().is_empty() {
        let said = errors.trim();
        return Err(format!("wrk ended with {} in phase {}: {said}", ended.status, phase.name).into());
    }
    let read = Figures::parse(&output, phase);
    read.map_err(|why| format!("phase {}: {why}; it printed:\n{output}", phase.name).into())
}
