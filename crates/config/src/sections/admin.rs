//! Keys of the admin listener.

use std::net::{Ipv4Addr, SocketAddr};

use crate::context::Context;
use crate::rules::collections::Optional;
use crate::rules::strings::Flag;
use crate::section::{Source, section};
use crate::sections::server::{Address, LISTEN_ADDRESS};

section! {
    /// The admin listener: metrics, health and status.
    Admin {
        listen: Option<Address> = None, Optional(LISTEN_ADDRESS),
            "Address of the admin listener: /metrics for Prometheus, /health, /ready, /status.json and /status. An address of this machine \
             or a `unix:` socket. Default: none.";
        remote: bool = false, Flag,
            "Allows an address that other machines can reach. Everyone who can connect may read everything there; nothing can be changed.";
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        if let (Some(Address::Tcp(address)), false) = (&self.listen, self.remote)
            && !address.ip().to_canonical().is_loopback()
        {
            let help = "listen on 127.0.0.1 or a unix: socket, or write `remote = true` if a firewall protects it";
            source.error(context, "listen", "other machines can reach this address", help);
        }
    }

    fn example() -> Self {
        Self { listen: Some(Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 9180)))), ..Self::default() }
    }
}
