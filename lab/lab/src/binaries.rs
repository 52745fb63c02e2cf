//! Our own programs: built in one profile, found where cargo puts them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where our programs lie.
#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
    profile: String,
}

impl Binaries {
    /// Builds them, and says where cargo has put them.
    ///
    /// # Errors
    /// Cargo's own, which has been printed.
    pub fn build(profile: &str) -> Result<Self, String> {
        let packages = ["--package", "null-server", "--package", "shearwater-cli", "--bins"];
        let examples = ["--package", "shearwater", "--example", "plaintext", "--example", "kinds"];
        Self::of(profile, &[packages.as_slice(), examples.as_slice()].concat())
    }

    /// Builds the one that speaks for axum apps whose requests last: other people's frameworks, which take their time.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_lasting(profile: &str) -> Result<Self, String> {
        Self::of(profile, &["--package", "shearwater-tower", "--example", "lasting"])
    }

    fn of(profile: &str, what: &[&str]) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).args(["build", "--quiet", "--profile", profile]).args(what);
        let status = command.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("cargo build --profile {profile}: {status}"));
        }
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(Self { folder: target.join(folder), profile: profile.to_owned() })
    }

    /// The profile they are built in.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The null server.
    pub fn null(&self) -> PathBuf {
        self.folder.join("null-server")
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.folder.join("shearwater")
    }

    /// The example with handlers.
    pub fn example(&self) -> PathBuf {
        self.folder.join("examples").join("plaintext")
    }

    /// The example with an axum app whose requests last, if it was [built](Self::build_lasting).
    pub fn lasting(&self) -> PathBuf {
        self.folder.join("examples").join("lasting")
    }

    /// The example with a handler of each kind.
    pub fn kinds(&self) -> PathBuf {
        self.folder.join("examples").join("kinds")
    }
}

/// The checkout.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}
