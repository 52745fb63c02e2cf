//! `server.http_port` and `[[listen]]`: where it listens.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use shearwater_config::{Address, Config};

use crate::args::Serve;
use crate::failure::Failure;

/// Where it listens if nothing says so.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Where it will listen. A flag replaces all that the file says of it, which is told.
pub(crate) fn addresses(
    serve: &Serve,
    config: &Config,
    replaced: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    let mut of_file: Vec<String> = config.server.http_port.map(of_port).into_iter().collect();
    for (index, listen) in config.listen.iter().enumerate() {
        match &listen.address {
            Address::Tcp(address) => of_file.push(address.to_string()),
            Address::Unix(_) => return Err(super::missing::unix(config, index)),
        }
    }
    if let Some(address) = &serve.listen {
        replaced
            .extend(of_file.iter().map(|file| format!("--listen {address} in place of listening on {file}")));
        return Ok(vec![address.clone()]);
    }
    if of_file.is_empty() {
        of_file.push(DEFAULT_ADDRESS.to_owned());
    }
    Ok(of_file)
}

/// All addresses: those of IPv6 and IPv4 by one socket, or those of IPv4 alone where the system has no IPv6.
fn of_port(port: u16) -> String {
    let has_ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
    let address = if has_ipv6 {
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
    } else {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
    };
    address.to_string()
}
