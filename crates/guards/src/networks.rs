//! Networks whose clients are served, or aren't.

use std::net::IpAddr;
use std::ops::ControlFlow;

use shearwater::engine::Request;
use shearwater::{Response, TrustedProxies, TrustedProxyError};

use crate::client::address;

/// Serves the clients of some networks only, and others with `403`.
///
/// A client in `deny` is refused, whatever `allow` has. Any other is served if it is in `allow`, or if `allow` is empty. So
/// the order of entries has no meaning, and nothing in `deny` is ever served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    allow: TrustedProxies,
    deny: TrustedProxies,
}

impl Networks {
    /// Parses entries: addresses, networks such as `10.0.0.0/8` or `fd00::/8`, and `unix` for clients of Unix-domain sockets.
    ///
    /// # Errors
    /// As [`TrustedProxies::new`].
    pub fn new<A: AsRef<str>, D: AsRef<str>>(
        allow: impl IntoIterator<Item = A>,
        deny: impl IntoIterator<Item = D>,
    ) -> Result<Self, TrustedProxyError> {
        Ok(Self { allow: TrustedProxies::new(allow)?, deny: TrustedProxies::new(deny)? })
    }

    /// Runs as a [guard](shearwater::Middleware::head).
    pub fn check(&self, request: &Request<'_>, response: &mut Response<'_>) -> ControlFlow<()> {
        if self.admits(address(request, response)) {
            return ControlFlow::Continue(());
        }
        response.status(403).text("This page is not served to your address.\n");
        ControlFlow::Break(())
    }

    /// Returns whether a client is served. Those of Unix-domain sockets have no address.
    #[must_use]
    pub fn admits(&self, client: Option<IpAddr>) -> bool {
        let is_in = |networks: &TrustedProxies| match client {
            Some(address) => networks.contains(address),
            None => networks.includes_unix(),
        };
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

#[cfg(test)]
mod tests {
    use super::Networks;

    #[test]
    fn deny_wins_and_an_empty_allow_is_everyone() {
        let none: [&str; 0] = [];
        let both = Networks::new(["10.0.0.0/8", "2001:db8::/32"], ["10.9.0.0/16"]).expect("networks");
        let denied = Networks::new(none, ["10.9.0.0/16", "unix"]).expect("networks");
        for (client, by_both, by_denied) in [
            (Some("10.1.2.3"), true, true),
            (Some("10.9.2.3"), false, false),
            (Some("::ffff:10.9.2.3"), false, false),
            (Some("2001:db8::1"), true, true),
            (Some("192.0.2.1"), false, true),
            (None, false, false),
        ] {
            let client = client.map(|text| text.parse().expect("an address"));
            assert_eq!((both.admits(client), denied.admits(client)), (by_both, by_denied), "{client:?}");
        }
        assert!(Networks::default().admits(None));
        assert_eq!(Networks::new(none, ["1.2.3.4", "x"]).expect_err("no network").index, 1);
    }
}
