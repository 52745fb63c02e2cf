//! Programs to measure: ours, as users build them and in other builds where one is named; peers from crates, built in a
//! workspace of their own with its own lock file, `lab/peers`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::succeed;
use crate::server::ServerSpec;

/// The installed version of static-web-server: a measurement names what it compares.
const STATIC_WEB_SERVER: &str = "static-web-server@2.44.1";

/// The build guided by a recorded profile; other builds have the name of cargo's profile.
pub(crate) const GUIDED: &str = "guided";

/// Our programs in each build that a run needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct OurPrograms {
    /// Folders, by build.
    pub(crate) folders: BTreeMap<String, PathBuf>,
    /// Build of servers that name none.
    pub(crate) usual: String,
    /// Recorded profile of the guided build, where that takes part.
    pub(crate) guided_by: Option<String>,
}

impl OurPrograms {
    /// Returns a program in a build, by default in the usual one.
    pub(crate) fn path(&self, build: Option<&str>, name: &str) -> PathBuf {
        let folder = self.folders.get(build.unwrap_or(&self.usual));
        folder.map_or_else(|| name.into(), |folder| folder.join(name))
    }

    /// Describes a build.
    pub(crate) fn describe(&self, build: Option<&str>) -> String {
        match (build.unwrap_or(&self.usual), &self.guided_by) {
            (GUIDED, Some(profile)) => format!("guided by profile {profile}"),
            (build, _) => format!("cargo's profile {build}"),
        }
    }
}

/// Builds in one of cargo's profiles, without a recorded one, and returns the folder.
pub(crate) fn build_plain(profile: &str, words: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(cargo());
    command.current_dir(root()).args(["build", "--quiet", "--profile", profile]).args(words.split(' '));
    succeed(command)?;
    Ok(target().join(if profile == "dev" { "debug" } else { profile }))
}

/// Builds further programs of ours that these servers need. Each by itself: in one build, features of one would be those of all.
pub(crate) fn build_extra<'a>(
    profile: &str,
    servers: impl Iterator<Item = &'a ServerSpec>,
) -> Result<(), String> {
    let words: BTreeSet<&str> = servers.filter_map(|spec| spec.extra_build.as_deref()).collect();
    words.into_iter().try_for_each(|words| {
        crate::progress(&format!("building {words}"));
        build_plain(profile, words).map(drop)
    })
}

/// Builds the peers from crates, with pinned versions.
pub(crate) fn build_peers() -> Result<(), String> {
    let build = "build --release --locked --manifest-path lab/peers/Cargo.toml --target-dir target/peers";
    let install = format!("install --locked --root target/peers/tools {STATIC_WEB_SERVER}");
    for words in [build, &install] {
        crate::progress(&format!("cargo {words}"));
        let mut command = Command::new(cargo());
        // An installation builds in a temporary folder of its own.
        command.current_dir(root()).args(words.split(' ')).env_remove("CARGO_TARGET_DIR");
        succeed(command)?;
    }
    Ok(())
}

/// Returns a program of the peers' workspace.
pub(crate) fn peer(name: &Path) -> PathBuf {
    root().join("target/peers/release").join(name)
}

/// Returns the versions of the peers from crates, as their workspace's lock file has them.
pub(crate) fn locked() -> String {
    let lock = fs::read_to_string(root().join("lab/peers/Cargo.lock")).unwrap_or_default();
    let one = |package| format!("{package} {}", locked_version(&lock, package).unwrap_or("(not locked)"));
    ["hyper", "axum", "tower-http", "tokio"].map(one).join(", ")
}

fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
    entry.split('"').next()
}

/// Returns the file of one of the system's programs: the path itself, or what `cargo lab setup` has installed, or what the shell
/// would find.
pub(crate) fn lookup(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(Into::into);
    let folders = std::iter::once(root().join("target/peers/tools/bin"));
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
        let programs = OurPrograms {
            folders: folders.into(),
            usual: "release".to_owned(),
            guided_by: Some("0123".to_owned()),
        };
        assert_eq!(programs.path(None, "shearwater"), Path::new("target/release/shearwater"));
        assert_eq!(programs.path(Some(GUIDED), "shearwater"), Path::new("target/guided/shearwater"));
        assert_eq!(programs.describe(None), "cargo's profile release");
        assert_eq!(programs.describe(Some(GUIDED)), "guided by profile 0123");
    }

    #[test]
    fn finds_versions_in_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"hyper-util\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"hyper\"\nversion = \"1.12.0\"\n";
        assert_eq!(locked_version(lock, "hyper"), Some("1.12.0"));
        assert_eq!(locked_version(lock, "axum"), None);
        assert!(!locked().contains("not locked"), "{}", locked());
    }
}
