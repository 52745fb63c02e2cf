//! Programs to measure: ours, as users build them and in other builds where one is named; peers, built by the commands that
//! `lab/peers/*.toml` names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::process::{output, succeed};
use crate::server::ServerSpec;

/// Folder of the peers that are not built in their workspace, in the checkout.
const TOOLS: &str = "target/peers/tools";

/// The build guided by a recorded profile, and the script that prints its folder. Other builds are named by cargo's profile, or by
/// a script of their own.
pub(crate) const GUIDED: &str = "guided";
const GUIDED_BUILD: &str = "lab/guided.sh";
/// Our programs but for the null servers, in cargo's words.
pub(crate) const PROGRAMS: &str =
    "--package shearwater-cli --bins --package shearwater --example kinds --example plaintext";

/// Our programs in each build that a run needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct OurPrograms {
    /// Folders, by build.
    pub(crate) folders: BTreeMap<String, PathBuf>,
    /// Sources of builds of another revision, and where they are built.
    pub(crate) sources: BTreeMap<String, (PathBuf, PathBuf)>,
    /// Build of servers that name none.
    pub(crate) usual: String,
}

impl OurPrograms {
    /// Returns a program in a build, by default in the usual one.
    pub(crate) fn path(&self, build: Option<&str>, name: &str) -> PathBuf {
        let folder = self.folders.get(build.unwrap_or(&self.usual));
        folder.map_or_else(|| name.into(), |folder| folder.join(name))
    }
}

/// Builds everything of ours that these servers need: in the usual profile of cargo, and in each build that one names.
pub(crate) fn build_all(usual: &str, servers: &[&ServerSpec]) -> Result<OurPrograms, String> {
    let mut programs = OurPrograms { usual: usual.to_owned(), ..OurPrograms::default() };
    let named = servers.iter().filter_map(|spec| spec.build.as_deref());
    for build in named.chain([usual]).collect::<BTreeSet<_>>() {
        crate::progress(&format!("building our programs: {build}"));
        let folder = match build {
            GUIDED => build_by(GUIDED_BUILD)?,
            script if script.ends_with(".sh") => build_by(script)?,
            _ => build_plain(build, &format!("--package null-server {PROGRAMS}"))?,
        };
        programs.folders.insert(build.to_owned(), folder);
    }
    build_extra(&root(), &target(), usual, servers)?;
    Ok(programs)
}

/// Builds the one program that a server of ours is, as users build it.
pub(crate) fn build_one(spec: &ServerSpec) -> Result<OurPrograms, String> {
    let package = if spec.is_null() { "null-server" } else { "shearwater-cli" };
    crate::progress(&format!("building {package}"));
    let folder = build_plain("release", &format!("--package {package} --bin {}", spec.program))?;
    let usual = "release".to_owned();
    Ok(OurPrograms { folders: [(usual.clone(), folder)].into(), usual, ..OurPrograms::default() })
}

/// Builds the programs of ours that are not always built. Each by itself: in one build, features of one would be those of all.
pub(crate) fn build_extra(
    sources: &Path,
    target: &Path,
    profile: &str,
    servers: &[&ServerSpec],
) -> Result<(), String> {
    for words in servers.iter().filter_map(|spec| spec.extra_build.as_deref()).collect::<BTreeSet<_>>() {
        crate::progress(&format!("building {words}"));
        build_in(sources, target, profile, words)?;
    }
    Ok(())
}

/// Builds by a script, which prints the folder of the programs.
fn build_by(script: &str) -> Result<PathBuf, String> {
    output(Command::new(root().join(script))).map(|printed| PathBuf::from(printed.trim()))
}

/// Builds in one of cargo's profiles, without a recorded one, and returns the folder of the programs.
fn build_plain(profile: &str, words: &str) -> Result<PathBuf, String> {
    build_in(&root(), &target(), profile, words)
}

/// Builds the sources in a folder likewise.
pub(crate) fn build_in(sources: &Path, target: &Path, profile: &str, words: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(cargo());
    command.current_dir(sources).args(["build", "--quiet", "--profile", profile]).args(words.split(' '));
    command.env("CARGO_TARGET_DIR", target);
    succeed(command)?;
    Ok(target.join(if profile == "dev" { "debug" } else { profile }))
}

/// Runs the build commands of all peers and returns those that failed, each with its reason.
pub(crate) fn build_peers(servers: &[ServerSpec]) -> Vec<(&str, String)> {
    let commands: BTreeSet<&str> = servers.iter().filter_map(|spec| spec.build_command.as_deref()).collect();
    let mut failed = Vec::new();
    for (at, &words) in commands.iter().enumerate() {
        let started = Instant::now();
        crate::progress(&format!("{} of {}: {words}", at + 1, commands.len()));
        match build_peer(words) {
            Ok(()) => crate::progress(&format!("built in {:.0?}", started.elapsed())),
            Err(why) => failed.push((words, why)),
        }
    }
    failed
}

/// Runs a build command, whose messages are shown; an error quotes the most telling one.
fn build_peer(words: &str) -> Result<(), String> {
    let mut words = words.split_whitespace();
    let program = words.next().filter(|program| *program != "cargo").map_or_else(cargo, Into::into);
    let mut command = Command::new(&program);
    command.current_dir(root()).args(words).env("GOBIN", root().join(TOOLS).join("bin"));
    // An installation builds in a temporary folder of its own.
    command.env_remove("CARGO_TARGET_DIR").stderr(Stdio::piped());
    let started = command.spawn();
    let mut child = started.map_err(|error| format!("{}: {error}", program.display()))?;
    let mut message = String::new();
    let lines = child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
    for line in lines.map_while(Result::ok) {
        eprintln!("{line}");
        if !message.starts_with("error") && !line.trim().is_empty() {
            message = line;
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{status}: {message}")) }
}

/// Returns the file of one of the system's programs: the path itself, or what `cargo lab setup` has installed, or what the shell
/// would find.
pub(crate) fn lookup(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(Into::into);
    let folders =
        [&*format!("{TOOLS}/bin"), "target/peers/release"].map(|folder| root().join(folder)).into_iter();
    let mut files =
        folders.chain(std::env::split_paths(&path)).chain(system).map(|folder| folder.join(program));
    files.find(|path| path.is_file())
}

/// Returns the folder that cargo builds in.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the checkout's folder.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_of_the_usual_build_unless_another_is_named() {
        let folders =
            ["release", GUIDED].map(|build| (build.to_owned(), PathBuf::from("target").join(build)));
        let programs =
            OurPrograms { folders: folders.into(), usual: "release".to_owned(), ..OurPrograms::default() };
        assert_eq!(programs.path(None, "shearwater"), Path::new("target/release/shearwater"));
        assert_eq!(programs.path(Some(GUIDED), "shearwater"), Path::new("target/guided/shearwater"));
    }

    #[test]
    fn a_peer_that_fails_to_build_is_reported_with_its_reason_and_stops_no_other() {
        let spec =
            |command: &str| ServerSpec { build_command: Some(command.to_owned()), ..ServerSpec::default() };
        let file = std::env::temp_dir().join(format!("shearwater-lab-built-{}", std::process::id()));
        let touch = format!("touch {}", file.display());
        let servers = ["cp /none/a /none/b", "no-such-program", &touch].map(spec);
        let failed = build_peers(&servers);
        assert!(std::fs::remove_file(&file).is_ok(), "the last one was built");
        assert_eq!(
            failed.iter().map(|(words, _)| *words).collect::<Vec<_>>(),
            ["cp /none/a /none/b", "no-such-program"]
        );
        assert!(failed[0].1.contains("exit status: 1: cp: cannot stat"), "{failed:?}");
        assert!(failed[1].1.starts_with("no-such-program: No such file"), "{failed:?}");
    }
}
