//! Addresses to listen on: `--listen`, `server.http_port` and `[[listen]]`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use shearwater::{ListenAddress, Server};
use shearwater_config::{Address, Config, Listen};

use crate::args::Serve;

const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Addresses to listen on, at least one.
#[derive(Debug)]
pub(crate) enum Listening {
    /// The address of the command line.
    Flag(String),
    /// The addresses of the file.
    File(ListenAddress, Vec<ListenAddress>),
}

impl Listening {
    /// Selects the addresses. Adds a line to `overridden` for each address of the file that `--listen` overrides.
    pub(crate) fn new(serve: &Serve, config: &Config, overridden: &mut Vec<String>) -> Self {
        let port = config.server.http_port.map(all_addresses);
        let mut of_file = port.into_iter().chain(config.listen.iter().map(address));
        match (&serve.listen, of_file.next()) {
            (Some(address), first) => {
                let line = |file| format!("--listen {address} overrides the address {file}");
                overridden.extend(first.into_iter().chain(of_file).map(line));
                Self::Flag(address.clone())
            }
            (None, Some(first)) => Self::File(first, of_file.collect()),
            (None, None) => Self::Flag(DEFAULT_ADDRESS.to_owned()),
        }
    }

    /// Returns a server for the addresses.
    pub(crate) fn server(&self) -> Server {
        match self {
            Self::Flag(address) => Server::new(address.as_str()),
            Self::File(first, further) => {
                further.iter().cloned().fold(Server::at(first.clone()), Server::listen_at)
            }
        }
    }

    /// Formats the addresses.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Flag(address) => vec![address.clone()],
            Self::File(first, further) => {
                std::iter::once(first).chain(further).map(ToString::to_string).collect()
            }
        }
    }
}

fn address(listen: &Listen) -> ListenAddress {
    match (&listen.address, listen.mode) {
        (Address::Tcp(address), _) => (*address).into(),
        (Address::Unix(path), None) => ListenAddress::unix(path),
        (Address::Unix(path), Some(mode)) => ListenAddress::Unix { path: path.clone(), mode },
    }
}

/// Returns the unspecified address: of IPv6, which includes IPv4, or of IPv4 on systems without IPv6.
fn all_addresses(port: u16) -> ListenAddress {
    match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into(),
        Err(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into(),
    }
}
