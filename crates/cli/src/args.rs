//! The command line, exactly as it is typed.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use shearwater_precompress::Format;

use crate::failure::Failure;
use crate::intent::{is_config, listen_address, of_missing};

const EXAMPLES: &str = "\
Examples:
  shearwater                            serve ./public, or a welcome page, on http://127.0.0.1:8080
  shearwater ./site                     serve the folder ./site
  shearwater ./site --port 8000         on http://127.0.0.1:8000
  shearwater ./site --listen [::]:80    to everyone, on port 80
  shearwater ./site --listen 127.0.0.1:0 --workers 1
  shearwater config --print-default > site.toml
  shearwater check site.toml            say what is wrong with it, or what it comes to
  shearwater site.toml                  serve by it, as by --config site.toml
  shearwater precompress ./site         make NAME.br, NAME.zst and NAME.gz beside its files

A folder is answered with its index.html. Nothing outside of the folder is ever served.
A folder that has the name of a command is written ./check.
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
    Precompress(Precompress),
    /// Serves, as without a command.
    #[command(hide = true)]
    Serve(Serve),
}

/// Serving, and what it may be told.
#[derive(Debug, Clone, Args)]
pub(crate) struct Serve {
    /// The folder to serve. Without it: ./public if there is one, else a welcome page
    pub(crate) dir: Option<PathBuf>,

    /// Serve by this configuration file (TOML)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Address and port to listen on, or unix:PATH; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, short, value_name = "ADDRESS", aliases = ["bind", "address", "addr"], value_parser = listen_address)]
    pub(crate) listen: Option<String>,

    /// Port to listen on, for this machine alone: short for --listen 127.0.0.1:PORT
    #[arg(long, short, value_name = "PORT", conflicts_with = "listen")]
    pub(crate) port: Option<u16>,

    /// Threads that serve; 0 is one per core [default: 0]
    #[arg(long, short, value_name = "N", alias = "threads", value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) workers: Option<u16>,

    /// How to wait for the kernel [default: auto]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) driver: Option<Driver>,

    /// How connections get to the workers [default: reuseport]
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) accept: Option<Accept>,

    /// Keep each worker on its own core
    #[arg(long)]
    pub(crate) pin: bool,

    /// Seconds that ending may take before what is left is cut off [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<u32>,
}

impl Serve {
    /// Replaces shorthands by what they mean: a port by an address, a configuration file by `--config`.
    pub(crate) fn understood(&self) -> Result<Self, Failure> {
        let mut serve = self.clone();
        if let Some(port) = serve.port {
            serve.listen = Some(format!("127.0.0.1:{port}"));
        }
        if let Some(file) = serve.dir.take_if(|dir| is_config(dir) && !dir.is_dir()) {
            if let Some(config) = &serve.config {
                let error = format!("two configuration files: {} and {}", config.display(), file.display());
                return Err(Failure::helped(error, "name one of them"));
            }
            if !file.exists()
                && let Some(failure) = of_missing(&file)
            {
                return Err(failure);
            }
            serve.config = Some(file);
        }
        Ok(serve)
    }

    /// Serving by a configuration file and nothing else.
    pub(crate) fn by(file: &Path) -> Self {
        let config = Some(file.to_owned());
        Self {
            dir: None,
            config,
            listen: None,
            port: None,
            workers: None,
            driver: None,
            accept: None,
            pin: false,
            drain: None,
        }
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

/// Makes compressed siblings (NAME.br, NAME.zst, NAME.gz) of a folder's files, which are then served ready.
///
/// Left out are siblings that are up to date, files that would not get 5 % smaller or are of a kind that is compressed already, symbolic
/// links, and names that begin with a dot. A sibling takes its place at once or not at all. One that is there and is not sent, since its file
/// was changed or copied after it, is compared with its file: it gets the times of a file of the same content, and is made anew otherwise.
/// Exit codes: 0 all went well, 1 something failed, 2 could not start.
#[derive(Debug, Args)]
pub(crate) struct Precompress {
    /// The folder
    pub(crate) dir: PathBuf,

    /// The formats
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', default_value = "br,zstd,gzip")]
    pub(crate) formats: Vec<FormatName>,

    /// Levels by format, such as br=9,zstd=12 [default: the highest: br=11,zstd=19,gzip=9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub(crate) level: Vec<(String, u32)>,

    /// Leave out files that are smaller
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) min_bytes: u64,

    /// Threads; 0 is one per core
    #[arg(long, short, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    pub(crate) jobs: u16,

    /// Only tell what would be made
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Make anew what is there
    #[arg(long)]
    pub(crate) force: bool,

    /// Tell what it has come to as JSON, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Brotli, NAME.br
    Br,
    /// Zstandard, NAME.zst
    Zstd,
    /// gzip, NAME.gz
    Gzip,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Br => Self::Br,
            FormatName::Zstd => Self::Zstd,
            FormatName::Gzip => Self::Gzip,
        }
    }
}

/// `br=9` as a format's name and a level.
fn level(text: &str) -> Result<(String, u32), String> {
    let (name, level) = text.split_once('=').ok_or("it is written FORMAT=N, such as br=9")?;
    if Format::ALL.iter().all(|format| format.name() != name) {
        return Err(format!("{name} is none of br, zstd and gzip"));
    }
    let level = level.parse().map_err(|_| format!("{level} is no level"))?;
    Ok((name.to_owned(), level))
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

/// The names of accept modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accept {
    /// Each worker listens by itself
    Reuseport,
    /// One thread accepts and hands connections out in turn
    Dispatch,
}
