//! `[[listen]]`: one address to listen on.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{ListenAddress, Mode, Optional};

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listen {
    /// Where.
    pub address: Address,
    /// Mode bits of a socket of the file system; `None`: 0660, its owner and group.
    pub mode: Option<u32>,
}

/// Where connections come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address of the network; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A socket of the file system, by its absolute path.
    Unix(PathBuf),
}

impl Default for Address {
    fn default() -> Self {
        Self::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
    }
}

/// As it stands in the file.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Fields for Listen {
    const REQUIRED: &'static [&'static str] = &["address"];

    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "address",
            "Where connections come in: an address and a port ([::] takes IPv4 too), or unix: and the path of a socket.",
            ListenAddress,
            &mut self.address,
        );
        visit.field(
            "mode",
            "Who may connect to a unix: socket. Without it, its owner and its group (0660).",
            Optional(Mode),
            &mut self.mode,
        );
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        if table.has("mode") && reading.is_sound_here() && matches!(self.address, Address::Tcp(_)) {
            let what = "only a unix: socket has a mode";
            reading.within("mode", |reading| reading.problem(&table.span_of("mode"), what));
        }
    }

    fn example() -> Self {
        Self { address: Address::Unix(PathBuf::from("/run/shearwater.sock")), mode: Some(0o660) }
    }
}
