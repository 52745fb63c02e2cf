//! Writes the seeds of all targets anew: `cargo run -p shearwater-fuzz-targets --example seeds`. Inputs that were found
//! (`found-...`) stay.

use std::io;
use std::process::ExitCode;

use shearwater_fuzz_targets::{TARGETS, seeds};

fn main() -> ExitCode {
    for target in TARGETS {
        match write(target.name) {
            Ok(count) => println!("{}: {count} seeds", target.name),
            Err(error) => {
                eprintln!("{}: {error}", target.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Puts the seeds of a target in place of those before; gives their number.
fn write(name: &str) -> io::Result<usize> {
    let folder = seeds::folder().join(name);
    std::fs::create_dir_all(&folder)?;
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(seeds::FOUND) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let seeds = seeds::of(name);
    for (name, bytes) in &seeds {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(seeds.len())
}
