//! `[[listen]]`: an address to listen on.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::context::Context;
use crate::rules::{ListenAddress, Mode, Optional};
use crate::section::{Table, section};

section! {
    /// An address to listen on.
    Listen {
        address: Address = Address::default(), ListenAddress,
            "An IP address with a port (`[::]` includes IPv4), or `unix:` followed by the path of a socket.";
        mode: Option<u32> = None, Optional(Mode),
            "Permissions of a `unix:` socket. Default: its owner and group may connect (0660).";
    }

    const REQUIRED: &'static [&'static str] = &["address"];

    fn check(&mut self, table: &Table<'_>, context: &mut Context<'_>) {
        if table.has("mode") && table.has("address") && matches!(self.address, Address::Tcp(_)) {
            let help = "remove it, or listen on a socket: address = \"unix:/run/shearwater.sock\"";
            table.error(context, "mode", "only a unix: socket has a mode", help);
        }
    }

    fn example() -> Self {
        Self { address: Address::Unix(PathBuf::from("/run/shearwater.sock")), mode: Some(0o660) }
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
