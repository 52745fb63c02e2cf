//! Reading a configuration file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use shearwater_config::limits::CONFIG_BYTES_MAX;
use shearwater_config::{Config, Diagnostics, Findings};

use crate::failure::Failure;

/// Reads a configuration file, and returns it with warnings. `check` finds further problems.
pub(crate) fn read(
    path: &Path,
    check: impl FnOnce(&Config) -> Findings,
) -> Result<(Config, Diagnostics), Failure> {
    refuse_special_file(path)?;
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = valid.split('\n').next_back().unwrap_or_default();
        let (line, column) = (1 + valid.matches('\n').count(), 1 + line.chars().count());
        Failure::start(format!("file is not UTF-8\n --> {}:{line}:{column}", path.display()))
    })?;
    Ok(Config::parse(path, &text, |name| std::env::var(name).ok(), check)?)
}

/// Folders of files that a shell passes to a process: `<(…)`, `/dev/stdin`.
const PASSED: [&str; 2] = ["/dev", "/proc"];

/// Refuses special files that weren't passed to the process: opening a named pipe would block until someone writes.
fn refuse_special_file(path: &Path) -> Result<(), Failure> {
    // A path without metadata can't be opened either.
    let Ok(kind) = std::fs::metadata(path).map(|metadata| metadata.file_type()) else { return Ok(()) };
    if kind.is_file() || kind.is_dir() || PASSED.iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let what = if kind.is_fifo() { "a pipe" } else { "a socket or a device" };
    Err(Failure::helped(
        format!("{} is {what}, not a file", path.display()),
        "name a file, or /dev/stdin to read from a pipe",
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::helped(
            format!("no such file: {path}"),
            format!("`shearwater config default > {path}` writes one to start with"),
        ),
        io::ErrorKind::IsADirectory => {
            Failure::helped(format!("{path} is a folder"), "name the configuration file in it")
        }
        io::ErrorKind::PermissionDenied => Failure::start(format!("permission denied: {path}")),
        _ => Failure::start(format!("can't read {path}: {error}")),
    }
}
