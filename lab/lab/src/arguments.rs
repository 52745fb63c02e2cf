//! What may stand on the command line.

use std::net::SocketAddr;

use clap::{Args, Parser, Subcommand};

use lab::binaries::Making;
use lab::compare::BLOCKS_MAX;

/// Measures Shearwater and its peers in one run
#[derive(Debug, Parser)]
#[command(name = "cargo lab", version)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run servers in turn and compare their CPU time per response
    Compare(CompareArgs),
    /// Run what the project's figures need, and print which are held
    Bar(BarArgs),
    /// What configured sites cost beside a folder: instructions, start, memory
    Sites(SitesArgs),
    /// What each kind of handler costs beside plain text: instructions
    Handlers(HandlersArgs),
    /// First in, first out against last in, first out, where hundreds of handlers are ready at once
    Order(OrderArgs),
    /// What lasts: events for an hour, an upload of 2 GB, a thousand WebSockets
    Lasting(LastingArgs),
    /// Thousands of connections on a page at a fixed rate: what is lost, and the slowest answer
    Crowd(CrowdArgs),
    /// Say what is installed, and how to get what is not
    Setup(SetupArgs),
    /// List scenarios and servers
    List,
    /// Send the requests of a scenario (the lab calls it)
    #[command(hide = true)]
    Client(ClientArgs),
    /// Ask for a small file while large ones are downloaded (the lab calls it)
    #[command(hide = true)]
    Beside(BesideArgs),
    /// Ask at a fixed rate on many connections (the lab calls it)
    #[command(hide = true)]
    CrowdClient(CrowdClientArgs),
    /// Ask on many connections, on each again as soon as it is answered (the lab calls it)
    #[command(hide = true)]
    TogetherClient(TogetherClientArgs),
}

#[derive(Debug, Args)]
pub(super) struct SetupArgs {
    /// Build the peers from crates first, which takes minutes
    #[arg(long)]
    pub(super) build_peers: bool,
}

/// How our own programs are made.
#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
    /// Profile that our programs are built in
    #[arg(long, default_value = "dist")]
    profile: String,

    /// Leave the profile of how they run off, which is used where there is one (`cargo xtask pgo generate`)
    #[arg(long)]
    no_pgo: bool,
}

impl ProgramArgs {
    /// What is to be built.
    pub(super) fn making(&self) -> Making {
        Making { profile: self.profile.clone(), may_be_guided: !self.no_pgo }
    }
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Rounds; each server has one block in each
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BLOCKS_MAX)))]
    pub(super) blocks: u32,

    /// Length of a block's window in seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(super) seconds: u32,

    /// For the order of blocks and the intervals
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    #[command(flatten)]
    pub(super) programs: ProgramArgs,

    /// A block is invalid if its server waited for its core longer, in per cent of the window; without it, 1, and 3 where
    /// connections end
    #[arg(long)]
    pub(super) wait_percent: Option<f64>,

    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The load, as `list` names it
    #[arg(long)]
    pub(super) scenario: String,

    /// The servers, as `list` names them, with commas between
    #[arg(long)]
    pub(super) servers: String,

    /// What the others are held against; without it, the first server
    #[arg(long)]
    pub(super) base: Option<String>,

    /// Rounds in which system calls are counted
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=i64::from(BLOCKS_MAX)))]
    pub(super) syscall_rounds: u32,

    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct BarArgs {
    /// Only these rows, with commas between; `axum` is all rows of axum on our engine
    #[arg(long)]
    pub(super) only: Option<String>,

    /// Also rows in which nothing is asked of us
    #[arg(long)]
    pub(super) peers: bool,

    /// Name the rows and run nothing
    #[arg(long)]
    pub(super) list: bool,

    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct SitesArgs {
    #[command(flatten)]
    pub(super) programs: ProgramArgs,
}

#[derive(Debug, Args)]
pub(super) struct HandlersArgs {
    #[command(flatten)]
    pub(super) programs: ProgramArgs,
}

#[derive(Debug, Args)]
pub(super) struct OrderArgs {
    /// Requests under way at once
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    pub(super) connections: u32,

    /// Rounds; each order has one block in each, and the first one another
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BLOCKS_MAX)))]
    pub(super) blocks: u32,

    /// Length of a block in seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(super) seconds: u32,

    /// For the order of blocks and the intervals
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// A block is void if its server waited for its core longer, in per cent of the window; without it, 1
    #[arg(long)]
    pub(super) wait_percent: Option<f64>,

    #[command(flatten)]
    pub(super) programs: ProgramArgs,
}

#[derive(Debug, Args)]
pub(super) struct LastingArgs {
    /// Only these, with commas between: sse-hour, sse-minute, upload, websockets
    #[arg(long)]
    pub(super) only: Option<String>,

    /// How the axum app's server waits for the kernel
    #[arg(long, default_value = "epoll", value_parser = ["epoll", "uring"])]
    pub(super) driver: String,

    /// Profile that the app is built in
    #[arg(long, default_value = "dist")]
    pub(super) profile: String,
}

#[derive(Debug, Args)]
pub(super) struct CrowdArgs {
    /// The servers, as `list` names them, with commas between
    #[arg(long, default_value = "shearwater-epoll,shearwater-uring,nginx")]
    pub(super) servers: String,

    /// Connections held at once
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    pub(super) connections: u32,

    /// Requests that fall due in a second, over all connections
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rate: u32,

    /// How long each server is asked, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(super) seconds: u32,

    #[command(flatten)]
    pub(super) programs: ProgramArgs,
}

/// Whom a client of the lab asks, and how long a whole answer is.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    #[arg(long)]
    pub(super) address: SocketAddr,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    bytes: u64,
}

impl AskArgs {
    /// Length of a whole answer.
    ///
    /// # Errors
    /// It is beyond what this machine can hold.
    pub(super) fn answer_bytes(&self) -> Result<usize, String> {
        usize::try_from(self.bytes).map_err(|error| error.to_string())
    }
}

#[derive(Debug, Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    #[arg(long)]
    pub(super) scenario: String,
    #[arg(long)]
    pub(super) millis: u64,
    #[arg(long)]
    pub(super) connections: u32,
}

#[derive(Debug, Args)]
pub(super) struct BesideArgs {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    #[arg(long)]
    pub(super) target: String,
    #[arg(long)]
    pub(super) millis: u64,
}

#[derive(Debug, Args)]
pub(super) struct CrowdClientArgs {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    #[arg(long)]
    pub(super) target: String,
    #[arg(long)]
    pub(super) connections: u32,
    #[arg(long)]
    pub(super) rate: u32,
    #[arg(long)]
    pub(super) seconds: u64,
}

#[derive(Debug, Args)]
pub(super) struct TogetherClientArgs {
    #[command(flatten)]
    pub(super) ask: AskArgs,
    #[arg(long)]
    pub(super) target: String,
    #[arg(long)]
    pub(super) connections: u32,
    #[arg(long)]
    pub(super) seconds: u64,
}
