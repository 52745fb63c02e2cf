//! The configuration file: read, within its bound, and understood.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use shearwater_config::Config;
use shearwater_config::limits::CONFIG_BYTES_MAX;

use crate::failure::Failure;

/// Reads a configuration file, with the variables of this process's environment.
pub(crate) fn read(path: &Path) -> Result<Config, Failure> {
    refuse_other(path)?;
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure::start(refusal(path, &error)))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let read = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = read.split('\n').next_back().unwrap_or_default();
        let (line, column) = (1 + read.matches('\n').count(), 1 + line.chars().count());
        Failure::start(format!("{}:{line}:{column}: this is no text in UTF-8", path.display()))
    })?;
    Ok(Config::parse(path, &text, |name| std::env::var(name).ok())?)
}

/// Folders of what the system hands to the process: a shell's `<(…)`, `/dev/stdin`.
const HANDED: [&str; 2] = ["/dev", "/proc"];

/// Refuses what is neither a file nor handed to the process: a pipe with a name may have nobody who writes, and to open it would wait.
fn refuse_other(path: &Path) -> Result<(), Failure> {
    // What can't be looked at can't be opened either.
    let Ok(kind) = std::fs::metadata(path).map(|metadata| metadata.file_type()) else { return Ok(()) };
    if kind.is_file() || kind.is_dir() || HANDED.iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let what = if kind.is_fifo() { "a pipe" } else { "a socket or a device" };
    Err(Failure::helped(
        format!("{} is {what}, not a file", path.display()),
        "name a file, or /dev/stdin with the configuration piped in",
    ))
}

/// Why a file can't be read, and what to do.
fn refusal(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no file {path}: `shearwater config --print-default` prints one to begin with")
        }
        io::ErrorKind::IsADirectory => format!("{path} is a folder: name the configuration file in it"),
        io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("{path} can't be read: {error}"),
    }
}
