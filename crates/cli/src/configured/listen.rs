//! `server.http_port` and `[[listen]]`: where it listens.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use shearwater::{ListenAddress, Server};
use shearwater_config::{Address, Config, Listen};

use crate::args::Serve;

/// Where it listens if nothing says so.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Where it will listen.
#[derive(Debug)]
pub(crate) enum Listening {
    /// As the command line says.
    At(String),
    /// As the file says, and not nowhere.
    AtAll(ListenAddress, Vec<ListenAddress>),
}

impl Listening {
    /// A flag replaces all that the file says of it, which is told.
    pub(crate) fn of(serve: &Serve, config: &Config, replaced: &mut Vec<String>) -> Self {
        let of_port = config.server.http_port.map(of_port);
        let mut of_file = of_port.into_iter().chain(config.listen.iter().map(place));
        match (&serve.listen, of_file.next()) {
            (Some(address), first) => {
                let told = |file| format!("--listen {address} in place of listening on {file}");
                replaced.extend(first.into_iter().chain(of_file).map(told));
                Self::At(address.clone())
            }
            (None, Some(first)) => Self::AtAll(first, of_file.collect()),
            (None, None) => Self::At(DEFAULT_ADDRESS.to_owned()),
        }
    }

    /// A server that will listen there.
    pub(crate) fn server(&self) -> Server {
        match self {
            Self::At(address) => Server::new(address.as_str()),
            Self::AtAll(first, further) => {
                further.iter().cloned().fold(Server::at(first.clone()), Server::listen_at)
            }
        }
    }

    /// As it is told.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::At(address) => vec![address.clone()],
            Self::AtAll(first, further) => {
                std::iter::once(first).chain(further).map(ToString::to_string).collect()
            }
        }
    }
}

fn place(listen: &Listen) -> ListenAddress {
    match (&listen.address, listen.mode) {
        (Address::Tcp(address), _) => (*address).into(),
        (Address::Unix(path), None) => ListenAddress::unix(path),
        (Address::Unix(path), Some(mode)) => ListenAddress::Unix { path: path.clone(), mode },
    }
}

/// All addresses: those of IPv6 and IPv4 by one socket, or those of IPv4 alone where the system has no IPv6.
fn of_port(port: u16) -> ListenAddress {
    let has_ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
    let address = if has_ipv6 {
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
    } else {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
    };
    address.into()
}
