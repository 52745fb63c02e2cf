//! Clients by address, and responses to those that have to wait.

use std::net::IpAddr;
use std::time::Duration;

use shearwater::Response;
use shearwater::engine::Request;

/// Returns the address of a request's client; `None` for a Unix-domain socket without one.
pub(crate) fn address(request: &Request<'_>, response: &mut Response<'_>) -> Option<IpAddr> {
    response.client(request).map(|client| client.ip().to_canonical())
}

/// A client as tables know it: an IPv4 address, or the network of an IPv6 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(u128);

impl ClientKey {
    /// The key that clients share for which a table has no room. No address has it.
    pub(crate) const OTHERS: Self = Self(u128::MAX);

    /// Returns the key of an address. One client of IPv6 usually has a network of 2⁶⁴ addresses. Clients without an address
    /// are one client.
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        Self(match address.map(|address| address.to_canonical()) {
            None => 0,
            Some(IpAddr::V4(v4)) => 0xffff << 32 | u128::from(v4.to_bits()),
            Some(IpAddr::V6(v6)) => v6.to_bits() >> 64 << 64,
        })
    }
}

/// Responds with an error that says when to try again (RFC 9110 section 10.2.3).
pub(crate) fn ask_to_wait(response: &mut Response<'_>, status: u16, wait: Duration, text: &str) {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    response.status(status).field("Retry-After", seconds.max(1).to_string()).text(text);
}

#[cfg(test)]
mod tests {
    use super::ClientKey;

    #[test]
    fn tells_clients_apart_by_address_or_network() {
        let key = |text: &str| ClientKey::of(Some(text.parse().expect("an address")));
        assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:0:0:2"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_ne!(key("0.0.0.0"), ClientKey::of(None));
        assert_ne!(key("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), ClientKey::OTHERS);
    }
}
