//! How cargo is told to trace or to use a profile.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use crate::place::Place;
use crate::profile::Profile;
use crate::toolchain::Toolchain;

/// The profile (cargo's) whose programs are guided: what is packaged and measured.
pub const CARGO_PROFILE: &str = "dist";

/// Words of cargo's for what may be guided: the program, and the examples that the lab measures. Each of them is trained, for the profile
/// of other programs on the same engine does harm.
pub const TRAINED: [&str; 9] = [
    "--package",
    "shearwater-cli",
    "--bins",
    "--package",
    "shearwater",
    "--example",
    "kinds",
    "--example",
    "plaintext",
];

/// What becomes of the programs.
#[derive(Debug, Clone, Copy)]
pub enum Way<'a> {
    /// They leave traces when they end.
    Tracing,
    /// They are built with this profile.
    Guided(&'a Profile),
}

impl Way<'_> {
    fn flag(self, place: &Place) -> OsString {
        let (name, path) = match self {
            Self::Tracing => ("-Cprofile-generate=", place.traces()),
            Self::Guided(profile) => ("-Cprofile-use=", profile.path().to_owned()),
        };
        let mut flag = OsString::from(name);
        flag.push(path);
        flag
    }

    fn target(self, place: &Place) -> PathBuf {
        match self {
            Self::Tracing => place.tracing(),
            Self::Guided(_) => place.guided(),
        }
    }
}

/// The command that builds `what`, in words of cargo's own.
pub fn command(place: &Place, toolchain: &Toolchain, way: Way<'_>, what: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(place.root()).args(["build", "--profile", CARGO_PROFILE, "--target"]);
    // A target that is named keeps the flags off what runs while building.
    command.arg(&toolchain.host).arg("--target-dir").arg(way.target(place)).args(what);
    let encoded = std::env::var_os("CARGO_ENCODED_RUSTFLAGS");
    let flags = with_flag(encoded.as_deref(), std::env::var_os("RUSTFLAGS").as_deref(), &way.flag(place));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    command
}

/// Where the built programs lie.
pub fn programs(place: &Place, toolchain: &Toolchain, way: Way<'_>) -> PathBuf {
    way.target(place).join(&toolchain.host).join(CARGO_PROFILE)
}

/// One flag more, in the form in which a flag may have spaces: as cargo does, one variable counts before the other.
fn with_flag(encoded: Option<&OsStr>, plain: Option<&OsStr>, flag: &OsStr) -> OsString {
    const BETWEEN: &str = "\u{1f}";
    let given = match (encoded, plain) {
        (Some(encoded), _) => encoded.to_owned(),
        (None, Some(plain)) => {
            plain.to_string_lossy().split_whitespace().collect::<Vec<_>>().join(BETWEEN).into()
        }
        (None, None) => OsString::new(),
    };
    let mut flags = given;
    if !flags.is_empty() {
        flags.push(BETWEEN);
    }
    flags.push(flag);
    flags
}

#[cfg(test)]
mod tests {
    use super::with_flag;

    #[test]
    fn what_the_user_asked_for_stays() {
        let with = |encoded: Option<&str>, plain: Option<&str>| {
            let flags = with_flag(encoded.map(str::as_ref), plain.map(str::as_ref), "-Cours=a b".as_ref());
            flags.into_string().expect("text")
        };
        assert_eq!(with(None, None), "-Cours=a b");
        assert_eq!(with(None, Some("-C  x -Cy")), "-C\u{1f}x\u{1f}-Cy\u{1f}-Cours=a b");
        assert_eq!(with(Some("-C\u{1f}z"), Some("-Cy")), "-C\u{1f}z\u{1f}-Cours=a b");
        assert_eq!(with(Some(""), Some("-Cy")), "-Cours=a b");
    }
}
