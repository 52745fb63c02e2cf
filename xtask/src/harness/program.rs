//! Builds the programs that are tried, in release: one that was built before the last change would be a wrong witness.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::common::Common;
use super::trouble::{During, Outcome};

/// The server program: `--server-bin`, else the workspace's release build.
pub(crate) fn server(common: &Common) -> Outcome<PathBuf> {
    let build = ["--package", "shearwater-cli", "--bin", "shearwater"];
    find(common.server_bin.as_deref(), "shearwater", &build)
}

/// The example server with the trial routes: `--example-bin`, else the workspace's release build.
pub(crate) fn example(common: &Common) -> Outcome<PathBuf> {
    let build = ["--package", "shearwater", "--example", "trial_server"];
    find(common.example_bin.as_deref(), "examples/trial_server", &build)
}

/// The smallest server: `given`, else the workspace's release build.
pub(crate) fn smallest(given: Option<&Path>) -> Outcome<PathBuf> {
    find(given, "examples/smallest", &["--package", "shearwater", "--example", "smallest"])
}

fn find(given: Option<&Path>, built: &str, build: &[&str]) -> Outcome<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().during(&format!("the given program {}", path.display()));
    }
    build_release(build)?;
    let path = release_folder().join(built);
    path.canonicalize().during(&format!("the built program {}", path.display()))
}

/// The workspace's root: the folder above this crate.
pub(crate) fn workspace_root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn release_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    workspace_root().join(target).join("release")
}

fn build_release(what: &[&str]) -> Outcome<()> {
    let cargo = std::env::var_os("CARGO");
    let cargo = cargo.as_deref().unwrap_or(OsStr::new("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root()).args(["build", "--release"]).args(what);
    let status = command.status().during("starting cargo build")?;
    if status.success() { Ok(()) } else { Err(format!("cargo build {what:?} ended with {status}").into()) }
}
