//! Our own programs: built in one profile of cargo's, found where cargo puts them; guided by a profile of how they run where there
//! is one (`cargo xtask pgo`), and then beside them without it.

use std::path::{Path, PathBuf};
use std::process::Command;

use pgo::build::{self, CARGO_PROFILE, TRAINED, Way};
use pgo::place::Place;
use pgo::profile::{self, Found, Profile};
use pgo::stamp::Stamp;
use pgo::toolchain::Toolchain;

/// The null server is never guided: it is what others are held against. With what is [`TRAINED`] it is everything that the lab measures and that is ours.
const NULL_SERVER: [&str; 2] = ["--package", "null-server"];

/// How our programs are to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Making {
    /// The profile of cargo's that they are built in.
    pub profile: String,
    /// Whether a profile of how they run is used where there is one for these sources.
    pub may_be_guided: bool,
}

/// Where our programs lie.
#[derive(Debug, Clone)]
pub struct Binaries {
    plain: PathBuf,
    guided: Option<PathBuf>,
    profile: String,
    guidance: String,
}

impl Binaries {
    /// Builds them, and says where cargo has put them.
    ///
    /// # Errors
    /// Cargo's own, which has been printed; or sources that can't be read.
    pub fn build(making: &Making, say: &dyn Fn(&str)) -> Result<Self, String> {
        let profile = making.profile.as_str();
        let place = Place::of(&root());
        let plain = build_plain(profile, &[NULL_SERVER.as_slice(), &TRAINED].concat())?;
        let (guided, guidance) = match guide(making, &place)? {
            Ok((toolchain, found)) => {
                let way = Way::Guided(&found);
                succeed(build::command(
                    &place,
                    &toolchain,
                    way,
                    &[["--quiet"].as_slice(), &TRAINED].concat(),
                ))?;
                (Some(build::programs(&place, &toolchain, way)), found.to_string())
            }
            Err(why) => (None, format!("none: {why}")),
        };
        let built = Self { plain, guided, profile: profile.to_owned(), guidance };
        say(&built.about());
        Ok(built)
    }

    /// Builds the one that speaks for axum apps whose requests last: other people's frameworks, which take their time. It is never
    /// guided: nobody trains it.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_lasting(profile: &str) -> Result<Self, String> {
        let plain = build_plain(profile, &["--package", "shearwater-tower", "--example", "lasting"])?;
        let guidance = "none: it is never trained".to_owned();
        Ok(Self { plain, guided: None, profile: profile.to_owned(), guidance })
    }

    /// The profile of cargo's that they are built in.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The profile of how they run that they are built with, or why there is none.
    pub fn guidance(&self) -> &str {
        &self.guidance
    }

    /// Both in one line, for whoever reads the results.
    pub fn about(&self) -> String {
        format!("our programs: cargo's profile {}; guided by: {}", self.profile, self.guidance)
    }

    /// Whether they are built with such a profile.
    pub fn are_guided(&self) -> bool {
        self.guided.is_some()
    }

    fn ours(&self) -> &Path {
        self.guided.as_deref().unwrap_or(&self.plain)
    }

    /// The null server.
    pub fn null(&self) -> PathBuf {
        self.plain.join("null-server")
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.ours().join("shearwater")
    }

    /// The program, never guided.
    pub fn plain_program(&self) -> PathBuf {
        self.plain.join("shearwater")
    }

    /// The example with handlers.
    pub fn example(&self) -> PathBuf {
        self.ours().join("examples").join("plaintext")
    }

    /// The example with handlers, never guided.
    pub fn plain_example(&self) -> PathBuf {
        self.plain.join("examples").join("plaintext")
    }

    /// The example with an axum app whose requests last, if it was [built](Self::build_lasting).
    pub fn lasting(&self) -> PathBuf {
        self.plain.join("examples").join("lasting")
    }

    /// The example with a handler of each kind.
    pub fn kinds(&self) -> PathBuf {
        self.ours().join("examples").join("kinds")
    }
}

/// The profile to build with, or why there is none.
fn guide(making: &Making, place: &Place) -> Result<Result<(Toolchain, Profile), String>, String> {
    if !making.may_be_guided {
        return Ok(Err("left off (--no-pgo)".to_owned()));
    }
    if making.profile != CARGO_PROFILE {
        return Ok(Err(format!("only programs built as {CARGO_PROFILE} are")));
    }
    let toolchain = Toolchain::of(place.root())?;
    let now = Stamp::now(place.root(), &toolchain)?;
    Ok(match profile::find(place, &now)? {
        Found::Fresh(found) => Ok((toolchain, found)),
        Found::Missing => Err("there is no profile (cargo xtask pgo generate)".to_owned()),
        Found::Stale(reasons) => Err(format!("the profile is stale: {}", reasons.join("; "))),
    })
}

/// Builds as anybody does, and gives the folder.
fn build_plain(profile: &str, what: &[&str]) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--quiet", "--profile", profile]).args(what);
    succeed(command)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(if profile == "dev" { "debug" } else { profile }))
}

fn succeed(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo build: {status}")) }
}

/// The checkout.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use pgo::place::Place;

    use super::{Binaries, Making, guide, root};

    fn reason(profile: &str, may_be_guided: bool) -> String {
        // Nobody has a profile there.
        let place = Place::within(&root(), &std::env::temp_dir().join("lab-without-a-profile"));
        let making = Making { profile: profile.to_owned(), may_be_guided };
        guide(&making, &place).expect("readable sources").expect_err("no profile")
    }

    #[test]
    fn what_is_guided_is_ours_and_never_what_it_is_held_against() {
        let guided = Binaries {
            plain: "plain".into(),
            guided: Some("guided".into()),
            profile: "dist".to_owned(),
            guidance: "profile 0123".to_owned(),
        };
        let plain = Binaries { guided: None, guidance: "none: why".to_owned(), ..guided.clone() };
        for path in [guided.program(), guided.example(), guided.kinds()] {
            assert!(path.starts_with("guided"), "{}", path.display());
        }
        for path in
            [guided.null(), guided.plain_program(), guided.plain_example(), plain.program(), plain.kinds()]
        {
            assert!(path.starts_with("plain"), "{}", path.display());
        }
        assert_eq!(guided.about(), "our programs: cargo's profile dist; guided by: profile 0123");
        assert!(guided.are_guided() && !plain.are_guided());
    }

    #[test]
    fn what_is_not_guided_says_why() {
        assert!(reason("dist", true).contains("cargo xtask pgo generate"));
        assert!(reason("dist", false).contains("--no-pgo"));
        assert!(reason("release", true).contains("only programs built as dist"));
    }
}
