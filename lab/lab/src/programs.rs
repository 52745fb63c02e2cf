//! Our own programs: built in one of cargo's profiles, guided by a recorded profile where there is one, and also without it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pgo::{self, CARGO_PROFILE, TRAINED};
use crate::process::succeed;

#[derive(Debug, Clone)]
pub(crate) struct Programs {
    plain: PathBuf,
    pub(crate) guided: Option<PathBuf>,
    /// Cargo's profile that they are built in.
    pub(crate) profile: String,
    /// Recorded profile that they are built with, or why there is none.
    pub(crate) guidance: String,
}

impl Programs {
    /// Builds everything that the lab measures and that is ours.
    pub(crate) fn build(profile: &str, may_be_guided: bool) -> Result<Self, String> {
        // The null server is never guided: it is what others are compared with.
        let plain = build_plain(profile, &format!("--package null-server {TRAINED}"))?;
        let (guided, guidance) = match guide(profile, may_be_guided) {
            Ok(found) => {
                let name = found.file_stem().unwrap_or_default().display().to_string();
                (Some(pgo::build_with(&found, TRAINED)?), format!("profile {name}"))
            }
            Err(why) => (None, format!("none: {why}")),
        };
        let built = Self { plain, guided, profile: profile.to_owned(), guidance };
        crate::progress(&built.about());
        Ok(built)
    }

    /// Describes the build in one line.
    pub(crate) fn about(&self) -> String {
        format!("our programs: cargo's profile {}; guided by: {}", self.profile, self.guidance)
    }

    /// Returns a program, guided where there is a profile.
    pub(crate) fn ours(&self, name: &str) -> PathBuf {
        self.guided.as_ref().unwrap_or(&self.plain).join(name)
    }

    /// Returns a program that is never guided.
    pub(crate) fn plain(&self, name: &str) -> PathBuf {
        self.plain.join(name)
    }
}

/// Returns the profile to build with, or why there is none.
fn guide(profile: &str, may_be_guided: bool) -> Result<PathBuf, String> {
    match (may_be_guided, profile) {
        (false, _) => Err("disabled by --no-pgo".to_owned()),
        (true, CARGO_PROFILE) => pgo::find(),
        (true, _) => Err(format!("only programs built as {CARGO_PROFILE} are")),
    }
}

/// Builds without a recorded profile and returns the folder.
pub(crate) fn build_plain(profile: &str, words: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(cargo());
    command.current_dir(root()).args(["build", "--quiet", "--profile", profile]).args(words.split(' '));
    succeed(command)?;
    Ok(target().join(if profile == "dev" { "debug" } else { profile }))
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
    fn the_null_server_and_plain_programs_are_never_guided() {
        let guided = Programs {
            plain: "plain".into(),
            guided: Some("guided".into()),
            profile: "dist".to_owned(),
            guidance: "profile 0123".to_owned(),
        };
        let plain = Programs { guided: None, ..guided.clone() };
        assert!(guided.ours("shearwater").starts_with("guided"));
        for path in [guided.plain("null-server"), guided.plain("shearwater"), plain.ours("shearwater")] {
            assert!(path.starts_with("plain"), "{}", path.display());
        }
    }

    #[test]
    fn an_unguided_build_says_why() {
        assert!(guide("dist", false).is_err_and(|why| why.contains("--no-pgo")));
        assert!(guide("release", true).is_err_and(|why| why.contains("only programs built as dist")));
    }
}
