//! `cargo xtask pgo`: the program built with a profile of how it runs, in one command.

mod browsers;
mod generate;
mod handlers;
mod pages;
mod question;
mod training;
mod visits;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Error, Result, bail, ensure};
use pgo::build::{self, Way};
use pgo::place::Place;
use pgo::profile::{self, Found, Profile};
use pgo::stamp::Stamp;
use pgo::toolchain::Toolchain;

/// Exit status where nothing could be built.
const NOT_BUILT: u8 = 2;
/// What is built for use.
const PROGRAM: [&str; 4] = ["--package", "shearwater-cli", "--bin", "shearwater"];

const MORE: &str = "\
A profile says which ways through the program are taken often; the compiler lays them out straight and inlines along them. It is \
made of runs of the program itself:

  cargo xtask pgo generate    # build, train, merge: about ten minutes
  cargo xtask pgo             # the program with it, in target/pgo/use
  cargo xtask pgo off         # the program without it, in target/dist

What merges comes with the compiler: `rustup component add llvm-tools`.

The training is no benchmark: files small and large, coded and not, ranges, 304, 404, refusals, bodies, every kind of handler, heads \
of browsers and of tools, keep-alive, pipelining, short connections, slow clients, resets, on each driver. Every answer is compared, \
and one that is wrong ends it without a profile.

A profile is used by the compiler and for the sources that it was made with; of any other it is said in what it differs. `cargo lab` \
measures with the profile where there is one, and says so; `--no-pgo` leaves it off.";

/// Arguments of `cargo xtask pgo`.
#[derive(Debug, clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// What to do [default: build with the profile if there is one for these sources, else without]
    what: Option<What>,
    /// With generate: which drivers are trained; a machine without io_uring has one
    #[arg(long, value_enum, default_value_t = Drivers::Both)]
    driver: Drivers,
    /// With generate: seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Drivers to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Drivers {
    Epoll,
    Uring,
    Both,
}

impl Drivers {
    /// Their names on the command line of the server.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Epoll => &["epoll"],
            Self::Uring => &["uring"],
            Self::Both => &["epoll", "uring"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Build without a profile
    Off,
    /// Make the profile, in the place of any earlier one
    Generate,
    /// Build with the profile; an error if there is none for these sources
    Use,
}

/// Does what was asked for. Exit status 0: done, 2: not, and why.
pub(crate) fn run(args: &Args) -> ExitCode {
    let _ = testkit::process::raise_descriptor_limit();
    match done(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pgo: {error:#}");
            ExitCode::from(NOT_BUILT)
        }
    }
}

fn done(args: &Args) -> Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = Place::of(manifest.parent().unwrap_or(manifest));
    let toolchain = Toolchain::of(place.root()).map_err(Error::msg)?;
    let program = match args.what {
        Some(What::Generate) => {
            let plan =
                generate::Plan { place: &place, toolchain: &toolchain, driver: args.driver, seed: args.seed };
            let profile = plan.run()?;
            println!("{profile}: {}", profile.path().display());
            println!("`cargo xtask pgo` builds with it, `cargo lab` measures with it");
            return Ok(());
        }
        Some(What::Off) => plain(&place)?,
        Some(What::Use) => match look(&place, &toolchain)? {
            Found::Fresh(profile) => guided(&place, &toolchain, &profile)?,
            other => bail!(without(&other)),
        },
        None => match look(&place, &toolchain)? {
            Found::Fresh(profile) => guided(&place, &toolchain, &profile)?,
            other => {
                say(&without(&other));
                plain(&place)?
            }
        },
    };
    println!("{}", program.display());
    Ok(())
}

fn look(place: &Place, toolchain: &Toolchain) -> Result<Found> {
    let stamp = Stamp::now(place.root(), toolchain).map_err(Error::msg)?;
    profile::find(place, &stamp).map_err(Error::msg)
}

/// Why a build is one without a profile.
fn without(found: &Found) -> String {
    const MAKE: &str = "`cargo xtask pgo generate` makes one";
    match found {
        Found::Stale(reasons) => format!("the profile is not used: {}. {MAKE}", reasons.join("; ")),
        Found::Missing | Found::Fresh(_) => format!("there is no profile. {MAKE}"),
    }
}

fn guided(place: &Place, toolchain: &Toolchain, profile: &Profile) -> Result<PathBuf> {
    let way = Way::Guided(profile);
    say(&format!("building with {profile}"));
    succeed(build::command(place, toolchain, way, &PROGRAM))?;
    Ok(build::programs(place, toolchain, way).join("shearwater"))
}

fn plain(place: &Place) -> Result<PathBuf> {
    say("building without a profile");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(place.root()).args(["build", "--profile", build::CARGO_PROFILE]).args(PROGRAM);
    succeed(command)?;
    let target = place.folder().parent().unwrap_or(Path::new("target"));
    Ok(target.join(build::CARGO_PROFILE).join("shearwater"))
}

/// Runs a command whose own messages say what is wrong.
fn succeed(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| name.clone())?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// Progress, apart from the result.
fn say(line: &str) {
    eprintln!("pgo: {line}");
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use pgo::profile::Found;

    use super::{Args, What, without};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn what(words: &[&str]) -> Result<Option<What>, String> {
        let line = Line::try_parse_from(["pgo"].iter().chain(words));
        line.map(|line| line.args.what).map_err(|error| error.to_string())
    }

    #[test]
    fn one_word_says_what_to_do_and_no_word_is_one_too() {
        assert_eq!(what(&[]), Ok(None));
        assert_eq!(what(&["off"]), Ok(Some(What::Off)));
        assert_eq!(what(&["generate", "--seed", "7", "--driver", "epoll"]), Ok(Some(What::Generate)));
        assert_eq!(what(&["use"]), Ok(Some(What::Use)));
        let refused = what(&["usee"]).expect_err("no such word");
        assert!(refused.contains("'use'"), "{refused}");
    }

    #[test]
    fn what_keeps_a_profile_from_use_is_told_with_the_way_out() {
        let stale = without(&Found::Stale(vec!["the sources: other".to_owned()]));
        assert!(stale.contains("not used: the sources: other") && stale.contains("pgo generate"), "{stale}");
        let missing = without(&Found::Missing);
        assert!(missing.contains("no profile") && missing.contains("pgo generate"), "{missing}");
    }
}
