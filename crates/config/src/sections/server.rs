//! `[server]`, `[[listen]]` and `[logging]`.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use crate::context::Context;
use crate::rules::collections::{List, Optional};
use crate::rules::numbers::{duration, integer};
use crate::rules::strings::{Choice, Flag, Text, choices, text};
use crate::section::{Source, section};

section! {
    /// Worker threads, the port and kernel options.
    Server {
        workers: u16 = 0, integer(0..=1024),
            "Worker threads. 0: one per core that the process may use.";
        http_port: Option<u16> = None, Optional(integer(0..=65_535)),
            "Port to listen on in clear, on every address of the machine, IPv4 and IPv6. 0 picks a free port. Sites with TLS redirect requests \
             from here. Without this key, `https_port` and `[[listen]]`, the server listens on 127.0.0.1:8080.";
        https_port: Option<u16> = None, Optional(integer(0..=65_535)),
            "Port to listen on for TLS, on every address of the machine, IPv4 and IPv6. 0 picks a free port. Needs a site with a certificate \
             (`tls` of `[[site]]`).";
        http2_prior_knowledge: bool = false, Flag,
            "Serves HTTP/2 in clear to clients that begin with it (\"h2c\", for gRPC and for proxies), and HTTP/1.1 to others. If off, \
             such clients get a 400. `Upgrade: h2c` is ignored. Over TLS the protocol is negotiated: see `protocols` of `[tls]`.";
        tcp_nodelay: bool = true, Flag,
            "Sends small writes at once (TCP_NODELAY). If off, short responses may wait for an acknowledgement.";
        tcp_keepalive: bool = false, Flag,
            "Lets the kernel detect dead clients (SO_KEEPALIVE).";
        trusted_proxies: Vec<String> = Vec::new(), List(text("an address, a network such as \"10.0.0.0/8\", or \"unix\" for Unix sockets")),
            "Proxies that may name the client's address, by one of the next two keys. Their own connections don't count for \
             `connections_per_address_max`. Only they may send `https://` request targets, which otherwise get 421.";
        proxy_protocol: ProxyProtocol = ProxyProtocol::Off, Choice(&[]),
            "Whether each connection begins with a PROXY header, version 1 or 2. If so, it must come from one of `trusted_proxies`; \
             others are reset. Accepting both isn't possible: clients could write the header themselves.";
        client_header: ClientHeader = ClientHeader::None, Choice(&[]),
            "Request header in which `trusted_proxies` pass on the client's address. All of them must write it: what a proxy forwards \
             as received, clients can forge.";
        backlog: u32 = 4096, integer(1..=2_147_483_647),
            "Length of the accept queue, per worker. The kernel caps it (net.core.somaxconn); the start report shows the effective value.";
        driver: Driver = Driver::Auto, Choice(&[]),
            "Kernel interface for events. \"auto\" picks io_uring where it works (most containers forbid it), else epoll or kqueue; any other is an error if unavailable.";
        accept: Accept = Accept::Reuseport, Choice(&[]),
            "How connections reach workers: \"reuseport\" gives each worker a listener, \"dispatch\" uses one acceptor for all.";
        order: Order = Order::Fifo, Choice(&[]),
            "Scheduling order of connections with more pending requests than one turn allows. \"lifo\" is bounded, so that none starves.";
        pin: bool = false, Flag,
            "Pins each worker to its own core.";
        drain_timeout: Duration = Duration::from_secs(30), duration(0..=86_400_000),
            "Maximum duration of a graceful shutdown, in which requests in flight are answered. Connections that remain are closed and \
             counted in the log.";
    }

    fn example() -> Self {
        Self { http_port: Some(8080), https_port: Some(8443), ..Self::default() }
    }
}

choices! {
    /// PROXY headers at the beginning of connections.
    ProxyProtocol {
        Off "off": "Connections begin with a request";
        Required "required": "Connections begin with a PROXY header";
    }
}

choices! {
    /// Request header with the client's address.
    ClientHeader {
        None "none": "The client is the other end of the connection, or the one in the PROXY header";
        XForwardedFor "x-forwarded-for": "The last address in `X-Forwarded-For` that isn't a trusted proxy's";
        Forwarded "forwarded": "The last address in `Forwarded` (RFC 7239) that isn't a trusted proxy's";
    }
}

choices! {
    /// Kernel interface for events.
    Driver {
        Auto "auto": "io_uring where it works, else epoll or kqueue";
        Epoll "epoll": "Linux's epoll";
        Uring "uring": "Linux's io_uring";
        Kqueue "kqueue": "kqueue of macOS and the BSDs";
    }
}

choices! {
    /// Distribution of connections over workers.
    Accept {
        Reuseport "reuseport": "A listener per worker; the kernel distributes connections";
        Dispatch "dispatch": "One acceptor distributes connections round-robin";
    }
}

choices! {
    /// Scheduling order of connections with more pending requests than one turn allows.
    Order {
        Fifo "fifo": "The longest waiting first";
        Lifo "lifo": "The most recent first, with a bound against starvation";
    }
}

section! {
    /// An address to listen on.
    Listen {
        address: Address = Address::default(), LISTEN_ADDRESS,
            "An IP address with a port (`[::]` includes IPv4), `localhost` for 127.0.0.1, or `unix:` followed by the path of a socket.";
        mode: Option<u32> = None, Optional(MODE),
            "Permissions of a `unix:` socket. Default: its owner and group may connect (0660).";
        tls: bool = false, Flag,
            "Connections are by TLS, as those of `https_port`.";
    }

    const REQUIRED: &'static [&'static str] = &["address"];

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        if source.has("mode") && source.has("address") && matches!(self.address, Address::Tcp(_)) {
            let help = "remove it, or listen on a socket: address = \"unix:/run/shearwater.sock\"";
            source.error(context, "mode", "only a unix: socket has a mode", help);
        }
    }

    fn example() -> Self {
        Self { address: Address::Unix(PathBuf::from("/run/shearwater.sock")), mode: Some(0o660), tls: false }
    }
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address; port 0 picks a free one.
    Tcp(SocketAddr),
    /// A Unix-domain socket by its absolute path.
    Unix(PathBuf),
}

impl Default for Address {
    fn default() -> Self {
        Self::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
    }
}

/// Formats the address as in the file.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// `ADDRESS:PORT` or `unix:PATH`.
pub(crate) const LISTEN_ADDRESS: Text<Address> = Text {
    allowed: "an IP address or localhost with a port, or a socket: \"127.0.0.1:8080\", \"[::]:80\", \"unix:/run/shearwater.sock\"",
    parse: parse_address,
    format: Address::to_string,
    help: "",
};

const UNIX: &str = "unix:";

/// Bytes of a socket's path: `sun_path` has 108 bytes on Linux and 104 elsewhere, including the terminating NUL.
const UNIX_PATH_BYTES_MAX: usize = 103;

fn parse_address(text: &str, base: &Path) -> Result<Address, String> {
    let Some(path) = text.strip_prefix(UNIX) else {
        // Other names would need a lookup, which may fail or change.
        if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
            return Ok(Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        }
        return text.parse::<SocketAddr>().map(Address::Tcp).map_err(|_| "invalid address".to_owned());
    };
    let joined = base.join(path);
    let whole = absolute(&joined).unwrap_or(joined);
    if path.is_empty() || path.contains('\0') {
        Err("missing path after `unix:`".to_owned())
    } else if whole.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        Err(format!("absolute path of the socket is longer than {UNIX_PATH_BYTES_MAX} bytes"))
    } else {
        Ok(Address::Unix(whole))
    }
}

/// The permission bits of a file as an octal string.
const MODE: Text<u32> = Text {
    allowed: "an octal mode, such as \"0660\"",
    parse: |text, _| {
        let is_octal = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let mode = u32::from_str_radix(text, 8).ok().filter(|&mode| is_octal && mode <= 0o777);
        mode.ok_or_else(|| "invalid mode".to_owned())
    },
    format: |mode| format!("{mode:04o}"),
    help: "",
};

impl Address {
    /// Returns whether the kernel would refuse to bind the second after the first.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix(one), Self::Unix(other)) => one == other,
            (Self::Tcp(one), Self::Tcp(other)) => {
                let is_same_port = one.port() == other.port() && one.port() != 0;
                is_same_port && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
            }
            _ => false,
        }
    }
}

/// Returns whether an unspecified address includes another one. That of IPv6 includes IPv4.
fn covers(all: &SocketAddr, one: &SocketAddr) -> bool {
    all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}

section! {
    /// Messages on standard error.
    Logging {
        level: Level = Level::Info, Choice(&[]),
            "Least severe messages to log to standard error while serving. The start report, warnings about the configuration and startup \
             errors are always printed. A reload changes it.";
        format: MessageFormat = MessageFormat::Text, Choice(&[]),
            "Form of these messages: \"text\", with the time where standard error is a file, or \"json\", an object per line \
             (docs/tasks/troubleshooting.md). A reload changes it.";
    }
}

choices! {
    /// Form of log messages.
    MessageFormat {
        Text "text": "A line of text";
        Json "json": "A JSON object in one line";
    }
}

choices! {
    /// Severity of log messages.
    Level {
        Off "off": "No messages";
        Error "error": "Failures";
        Warn "warn": "Problems that need attention";
        Info "info": "Normal operation";
        Debug "debug": "Everything";
    }
}
