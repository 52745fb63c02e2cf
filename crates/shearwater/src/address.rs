//! Addresses to listen on, as programs write them.

use std::io;
use std::net::ToSocketAddrs;

use shearwater_engine::ListenAddress;

use crate::error::Error;

/// Marks addresses with TLS until they are resolved.
pub(crate) const TLS_PREFIX: &str = "tls:";

/// Resolves an address or a name with a port, or the path of a Unix socket.
pub(crate) fn resolve(given: &str) -> Result<ListenAddress, Error> {
    if let Some(given) = given.strip_prefix(TLS_PREFIX) {
        let address = resolve(given)?;
        return Ok(address.tcp().map_or(address, ListenAddress::Tls));
    }
    if let Some(path) = given.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(ListenAddress::unix(path));
    }
    let failed = |error| Error::Address { given: given.to_owned(), error };
    let mut found = given.to_socket_addrs().map_err(failed)?;
    let first = found.next().ok_or_else(|| failed(io::Error::other("the name has no address")))?;
    Ok(first.into())
}
