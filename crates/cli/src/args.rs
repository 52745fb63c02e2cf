//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use shearwater_config::{Accept, Driver, Symlinks};
use shearwater_precompress::Coding;

use crate::failure::Failure;
use crate::intent::{is_config, of_missing};
use crate::values::{choice, duration, error_page, format, header, integer, level, listen_address, size};

const EXAMPLES: &str = "\
Examples:
  shearwater                            serve ./public, or a welcome page, on http://127.0.0.1:8080
  shearwater ./site                     serve the folder ./site
  shearwater ./site --port 8000         on http://127.0.0.1:8000
  shearwater ./site --listen [::]:80    on port 80 of all addresses
  shearwater ./site --domain example.org with HTTPS, and a certificate that renews itself
  shearwater ./site --self-signed       try HTTPS on https://127.0.0.1:8443
  shearwater ./files --listing          list folders that have no index
  shearwater ./dist --spa               serve /index.html for the paths of an app
  shearwater ./site --open              open it in a browser
  shearwater ./site --log access.log    with an access log in the combined format
  shearwater ./site --admin 9180        metrics and a status page on http://127.0.0.1:9180
  shearwater init                       write a short site.toml for the folder at hand
  shearwater config default > site.toml write a configuration with every key
  shearwater check site.toml            check it, and print a summary
  shearwater site.toml                  serve the sites that it configures
  shearwater precompress ./site         make NAME.br, NAME.zst and NAME.gz for its files
  shearwater reload /run/site.pid       reload a server that was started with --pid-file, and wait
  shearwater top                        watch a server that was started with --admin 127.0.0.1:9180

Nothing outside of a served folder is ever sent. Write ./check for a folder that is called like a
command. Flags override the configuration file; the start report lists what they override.

Signals: SIGINT (Ctrl-C), SIGTERM or SIGQUIT drains: no new connections, and responses to the
requests received. A second one stops at once. SIGHUP reads the configuration or folder again and
serves it, at its addresses, without a dropped request. SIGUSR1 reopens the access log, for
logrotate, and prints counters and the limits that were reached. SIGUSR2 starts the program again,
in its new version if its file was replaced; the new process takes over the listeners, and this one
drains.
Exit codes: 0 served and stopped, 1 the system prevents it (an address is taken, for example), or a
worker or the process that took over failed, 2 the command line or the configuration is wrong:
another try would change nothing.";

/// Serves a folder or configured sites over HTTP/1.1, HTTP/2 and HTTPS.
#[derive(Debug, Parser)]
#[command(
    name = "shearwater",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// Commands other than serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "validate")]
    Check(Check),
    Config(Config),
    Health(Health),
    Precompress(Precompress),
    /// Has a running server read its configuration or folder again
    ///
    /// It waits until all workers have the new one, or prints what was refused. A server without a control socket gets SIGHUP, and its
    /// log has the result. Exit codes: 0 reloaded, or sent, 1 refused, no such server, or no result in time.
    Reload(Reload),
    Certificates(Certificates),
    Top(Top),
    /// Has a running server start its new version, which takes over its listeners
    ///
    /// It waits until the new process serves, or prints why it doesn't. A server without a control socket gets SIGUSR2. Exit codes: 0
    /// success, 1 refused, no such server, or no result in time.
    Upgrade(Running),
    Init(Init),
    Completions(Completions),
    Man(Man),
    /// Serves, as without a command
    #[command(hide = true)]
    Serve(Box<Serve>),
}

/// Arguments for serving.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Serve {
    /// Folder to serve [default: ./public if it exists, or a welcome page]
    pub(crate) dir: Option<PathBuf>,

    /// Configuration file (TOML)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Address and port to listen on, or unix:PATH; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, short, value_name = "ADDRESS", aliases = ["bind", "address", "addr"], value_parser = listen_address)]
    pub(crate) listen: Option<String>,

    /// Port to listen on, local only: short for --listen 127.0.0.1:PORT
    #[arg(long, short, value_name = "PORT", value_parser = integer(0..=u16::MAX), conflicts_with = "listen")]
    pub(crate) port: Option<u16>,

    /// Host name to serve over HTTPS, on ports 443 and 80; the server gets and renews a certificate by itself. Repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["cert", "key", "self_signed"])]
    pub(crate) domain: Vec<String>,

    /// Certificate of your own (PEM) for HTTPS, on ports 443 and 80
    #[arg(long, value_name = "FILE", conflicts_with = "self_signed")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "self_signed")]
    pub(crate) key: Option<PathBuf>,

    /// Try HTTPS on https://127.0.0.1:8443, with a certificate that no browser trusts
    #[arg(long)]
    pub(crate) self_signed: bool,

    /// Port for HTTPS, on all addresses
    #[arg(long, value_name = "PORT", value_parser = integer(0..=u16::MAX), conflicts_with_all = ["listen", "port"])]
    pub(crate) https_port: Option<u16>,

    /// Port for HTTP, on all addresses
    #[arg(long, value_name = "PORT", value_parser = integer(0..=u16::MAX), conflicts_with_all = ["listen", "port"])]
    pub(crate) http_port: Option<u16>,

    /// Get certificates from Let's Encrypt's staging environment, which allows for more attempts and no browser trusts
    #[arg(long)]
    pub(crate) acme_staging: bool,

    /// List folders that have no index
    #[arg(long)]
    pub(crate) listing: bool,

    /// Serve /index.html for paths without a file, as single-page apps need
    #[arg(long)]
    pub(crate) spa: bool,

    /// Compress text on the fly, by brotli, zstd or gzip as the client prefers
    #[arg(long)]
    pub(crate) compress: bool,

    /// Cache-Control of all files, such as no-cache or 'public, max-age=3600'
    #[arg(long, value_name = "VALUE")]
    pub(crate) cache_control: Option<String>,

    /// Symbolic links to follow [default: inside]
    #[arg(long, value_name = "POLICY", value_parser = choice::<Symlinks>())]
    pub(crate) symlinks: Option<Symlinks>,

    /// File of the folder for responses with a status, such as 404=/404.html. Repeatable
    #[arg(long, value_name = "STATUS=FILE", value_parser = error_page)]
    pub(crate) error_page: Vec<(u16, String)>,

    /// Header of all responses, such as 'X-Frame-Options: DENY'. Repeatable
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,

    /// Let scripts of all other sites read the files (CORS)
    #[arg(long)]
    pub(crate) cors: bool,

    /// Worker threads; 0: one per core [default: 0]
    #[arg(long, short, value_name = "N", alias = "threads", value_parser = integer(0..=1024_u16))]
    pub(crate) workers: Option<u16>,

    /// Kernel interface for events [default: auto]
    #[arg(long, value_name = "NAME", value_parser = choice::<Driver>())]
    pub(crate) driver: Option<Driver>,

    /// How connections reach workers [default: reuseport]
    #[arg(long, value_name = "MODE", value_parser = choice::<Accept>())]
    pub(crate) accept: Option<Accept>,

    /// Pin each worker to its own core
    #[arg(long)]
    pub(crate) pin: bool,

    /// File for the number of the process, while it serves; beside it FILE.sock, by which reload and upgrade get their result
    #[arg(long, value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,

    /// Access log in the combined format: a file, - for standard output, or syslog:/dev/log
    #[arg(long, value_name = "PATH", aliases = ["access-log", "accesslog"])]
    pub(crate) log: Option<String>,

    /// Address of the admin listener with metrics and status, of this machine or unix:PATH, such as 127.0.0.1:9180
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) admin: Option<String>,

    /// Print no reports to standard output at the start and the end
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Report how the server works, too, and log debugging messages
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Open the site in a browser once it is served
    #[arg(long)]
    pub(crate) open: bool,

    /// Reload when the configuration file or certificates change, or another folder takes the place of a served one
    #[arg(long)]
    pub(crate) watch: bool,

    /// Maximum duration of a graceful shutdown, such as 10s or 500ms [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) drain: Option<Duration>,
}

impl Serve {
    /// Expands shorthands: a port to an address, a configuration file to `--config`.
    pub(crate) fn expanded(&self) -> Result<Self, Failure> {
        let mut serve = self.clone();
        if let Some(port) = serve.port {
            serve.listen = Some(format!("127.0.0.1:{port}"));
        }
        if let Some(file) = serve.dir.take_if(|dir| is_config(dir) && !dir.is_dir()) {
            if let Some(config) = &serve.config {
                let error = format!("two configuration files: {} and {}", config.display(), file.display());
                return Err(Failure::usage_helped(error, "name one of them"));
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

    /// Returns arguments for serving a configuration file.
    pub(crate) fn by(file: &Path) -> Self {
        Self { config: Some(file.to_owned()), ..Self::default() }
    }
}

/// Checks a configuration file, and prints a summary
///
/// Reports all errors in the file. Nothing is bound. Exit codes: 0 valid, 2 invalid.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Configuration file (TOML)
    pub(crate) file: PathBuf,

    /// Print JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a short site.toml, with comments, for a folder
///
/// Writes the keys that most sites need. An existing site.toml stays. Exit codes: 0 written, 1 can't be written, 2 the file exists
/// already, or the folder is missing.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Folder to serve [default: public, dist, build or another one that build tools write to, or the working directory]
    pub(crate) folder: Option<PathBuf>,
}

/// Prints the completions of a shell
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: Shell,
}

/// Prints the manual page: shearwater man | man -l -
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write all manual pages and completions into a folder, instead
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}

/// Prints a configuration
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) text: ConfigText,
}

/// Configurations to print.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigText {
    /// Prints a configuration with every key, its default and its description
    Default,
    /// Prints a configuration file with defaults filled in; environment variables as written
    Show {
        /// Configuration file (TOML)
        file: PathBuf,
    },
}

/// Requests a URL, for the health checks of containers
///
/// Exit codes: 0 healthy (status 2xx or 3xx), 1 another status or no response.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// URL such as http://127.0.0.1:8080/health, or unix:PATH
    #[arg(default_value = "http://127.0.0.1:8080/")]
    pub(crate) url: String,

    /// Maximum duration
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// A running server.
#[derive(Debug, Args)]
pub(crate) struct Running {
    /// PID file of the server (see --pid-file), or the number of its process [default: shearwater.pid in $RUNTIME_DIRECTORY,
    /// $XDG_RUNTIME_DIR or /run/shearwater]
    #[arg(value_name = "PID_FILE")]
    pub(crate) process: Option<String>,

    /// Maximum duration
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// A reload.
#[derive(Debug, Args)]
pub(crate) struct Reload {
    #[command(flatten)]
    pub(crate) running: Running,

    /// Only try: the server reads and checks everything as for a reload, and changes nothing
    #[arg(long)]
    pub(crate) check: bool,
}

/// Lists the certificates that a running server gets by itself
///
/// It needs the server's control socket, which is beside its PID file. Exit codes: 0 success, 1 refused, no such server, or no
/// result in time.
#[derive(Debug, Args)]
pub(crate) struct Certificates {
    #[command(flatten)]
    pub(crate) running: Running,

    /// Order the certificate of this name now
    #[arg(long, value_name = "NAME")]
    pub(crate) renew: Option<String>,
}

/// Shows the state of a running server, once a second
///
/// It reads /status.json of the server's admin listener. Press q or Ctrl-C to quit. Without a terminal it prints the state once.
/// Exit codes: 0 success, 1 no status.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Address of the admin listener, or unix:PATH
    #[arg(default_value = "127.0.0.1:9180", value_parser = listen_address)]
    pub(crate) address: String,

    /// Print the state once as text, with the rates of one second
    #[arg(long)]
    pub(crate) once: bool,

    /// Print the status document as JSON
    #[arg(long, conflicts_with = "once")]
    pub(crate) json: bool,
}

/// Makes precompressed files (NAME.br, NAME.zst, NAME.gz) beside the files of a folder
///
/// Files are written atomically. It skips files with up-to-date precompressed files, files that wouldn't get 5 % smaller, formats that are
/// already compressed, symbolic links, and names that start with a dot. A precompressed file that is older than its original is compared
/// with it: if the content is the same, only its times are updated. Exit codes: 0 success, 1 some files failed, 2 could not start.
#[derive(Debug, Args)]
pub(crate) struct Precompress {
    /// Folder
    pub(crate) dir: PathBuf,

    /// Formats
    #[arg(long, value_name = "LIST", value_parser = format(), value_delimiter = ',', default_value = "br,zstd,gzip")]
    pub(crate) formats: Vec<Coding>,

    /// Compression levels by format [default: br=11,zstd=19,gzip=9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub(crate) level: Vec<(Coding, u32)>,

    /// Minimum size of a file, such as 1KiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = size)]
    pub(crate) min_bytes: u64,

    /// Threads; 0: one per core
    #[arg(long, short, value_name = "N", default_value_t = 0, value_parser = integer(0..=256_u16))]
    pub(crate) jobs: u16,

    /// Print what would be made, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Make files anew even if they are up to date
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the summary as JSON to standard output
    #[arg(long)]
    pub(crate) json: bool,
}
