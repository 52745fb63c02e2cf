//! System calls per response, counted by perf without slowing the server much: in a block of its own all the same.

use std::path::Path;
use std::process::Command;

use crate::process::Launch;

const EVENT: &str = "raw_syscalls:sys_enter";

/// The command that counts the processes' system calls while a client runs.
pub fn counting(ids: &[u32], output: &Path, client: &Launch, core: usize) -> Command {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    let inner = client.on_core(core);
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", EVENT, "-p", &ids.join(","), "-o"]).arg(output).arg("--");
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

/// Reads perf's count; none where it could not count.
pub fn parse(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains(EVENT))?;
    line.split(',').next()?.trim().parse().ok()
}
