//! Other people's servers: where they are found, how they are built, and with which settings each runs.
//!
//! The settings are what each one's documentation recommends for speed on one worker: no access log, connections that
//! stay, open files remembered where it can. Peers from crates are built in a workspace of their own, `lab/peers`.

pub mod h2o;
pub mod lighttpd;
pub mod lock;
pub mod nginx;
pub mod static_web_server;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::root;
use crate::process::Launch;
use crate::server::Place;

/// Descriptors of a server, and connections that leave some for its files.
pub(crate) const DESCRIPTORS: u32 = 20_000;
pub(crate) const CONNECTIONS: u32 = 19_000;
/// Room for a burst of connections.
pub(crate) const BACKLOG: u32 = 16_384;
/// An idle connection stays for so long, in seconds: longer than any block.
pub(crate) const IDLE_S: u32 = 300;

/// The peers' workspace.
pub fn workspace() -> PathBuf {
    root().join("lab/peers")
}

/// Where what is built for the peers lies, whatever other builds are told.
pub fn target() -> PathBuf {
    root().join("target/peers")
}

/// A program of the peers' workspace.
pub fn built(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// How a program of the peers' workspace is started.
pub(crate) fn launch_built(program: PathBuf, place: &Place<'_>, more: &[&str]) -> Launch {
    let mut arguments = vec![place.address.to_string(), place.site.public().display().to_string()];
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    Launch { program, arguments, environment: Vec::new() }
}

/// The commands that build the peers from crates, as one would type them in the checkout.
pub fn build_commands() -> [Vec<String>; 2] {
    let shown = |path: &Path| path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let (target, tools) = (shown(&target()), shown(&static_web_server::tools()));
    let workspace = format!("{}/Cargo.toml", shown(&workspace()));
    let build = ["build", "--release", "--locked", "--manifest-path", &workspace, "--target-dir", &target];
    let crate_and_version = format!("static-web-server@{}", static_web_server::VERSION);
    let install = ["install", "--locked", "--root", &tools, &crate_and_version];
    [build.map(str::to_owned).to_vec(), install.map(str::to_owned).to_vec()]
}

/// Builds the peers from crates.
///
/// # Errors
/// Cargo's own, which has been printed.
pub fn build(say: &dyn Fn(&str)) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for arguments in build_commands() {
        let line = format!("cargo {}", arguments.join(" "));
        say(&line);
        let mut command = Command::new(&cargo);
        // An installation builds in a scratch folder of its own.
        command.current_dir(root()).args(&arguments).env_remove("CARGO_TARGET_DIR");
        let status = command.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("{line}: {status}"));
        }
    }
    Ok(())
}
