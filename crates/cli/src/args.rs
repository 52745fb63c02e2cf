//! The command line, exactly as it is typed.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use shearwater::DriverChoice;

const EXAMPLES: &str = "\
Examples:
  shearwater                            serve ./public, or a welcome page, on http://127.0.0.1:8080
  shearwater ./site                     serve the folder ./site
  shearwater ./site --listen [::]:80    to everyone, on port 80
  shearwater ./site --listen 127.0.0.1:0 --workers 1
  shearwater config --print-default > site.toml
  shearwater check site.toml            say what is wrong with it, or what it comes to
  shearwater --config site.toml         serve by it

A folder is answered with its index.html. Nothing outside of the folder is ever served. A folder that
has a command's name is written ./check.
Flags win over the configuration file, and what they replace is told at the start.
Ctrl-C (SIGINT) or SIGTERM: no new connections, every request received is answered, then it ends;
a second one ends at once. SIGUSR1: a line on what it has done so far and which limits were
reached, as at its end. Exit codes: 0 served and ended, 1 a worker failed, 2 could not start.";

/// Serves a folder, or a site by its configuration, over HTTP/1.1, at the kernel's own limit.
#[derive(Debug, Parser)]
#[command(
    name = "shearwater",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// What else there is to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Config(ConfigText),
}

/// Serving, and what it may be told.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The folder to serve. Without it: ./public if there is one, else a welcome page
    pub(crate) dir: Option<PathBuf>,

    /// Serve by this configuration file (TOML)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, short, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,

    /// Threads that serve; 0 is one per core [default: 0]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) workers: Option<u16>,

    /// How to wait for the kernel [default: auto]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) driver: Option<Driver>,

    /// Keep each worker on its own core
    #[arg(long)]
    pub(crate) pin: bool,

    /// Seconds that ending may take before what is left is cut off [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<u32>,
}

impl Serve {
    /// Serving by a configuration file and nothing else.
    pub(crate) fn by(file: &Path) -> Self {
        let config = Some(file.to_owned());
        Self { dir: None, config, listen: None, workers: None, driver: None, pin: false, drain: None }
    }
}

/// Says what is wrong with a configuration file, or where it would listen and what it would serve.
///
/// Nothing is bound. Exit codes: 0 right, 2 not.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file (TOML)
    pub(crate) file: PathBuf,

    /// Say it as JSON, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a configuration: every key with its default, or all that is in effect with a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ConfigText {
    /// Every key with its default and what it means, to be copied and changed
    #[arg(long)]
    pub(crate) print_default: bool,

    /// All that is in effect with this file, defaults filled in; variables of the environment as written
    #[arg(long, value_name = "FILE")]
    pub(crate) print_effective: Option<PathBuf>,
}

/// The names of drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Driver {
    /// The best that works here
    Auto,
    /// Linux's epoll
    Epoll,
    /// Linux's io_uring
    Uring,
    /// The kqueue of macOS and the BSDs
    Kqueue,
}

impl From<Driver> for DriverChoice {
    fn from(driver: Driver) -> Self {
        match driver {
            Driver::Auto => Self::Auto,
            Driver::Epoll => Self::Epoll,
            Driver::Uring => Self::Uring,
            Driver::Kqueue => Self::Kqueue,
        }
    }
}
