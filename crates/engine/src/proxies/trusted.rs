//! Trusted proxies: networks and Unix-domain sockets that may name the client's address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use crate::limits::TRUSTED_PROXIES_MAX;

/// Name of the entry for Unix-domain sockets.
const UNIX: &str = "unix";

/// A set of proxies that the server trusts, by address. Cloning is cheap.
///
/// ```
/// use shearwater_engine::TrustedProxies;
///
/// let trusted = TrustedProxies::new(["10.0.0.0/8", "::1", "unix"])?;
/// assert!(trusted.contains("10.1.2.3".parse()?) && !trusted.contains("192.0.2.1".parse()?));
/// assert!(TrustedProxies::new(["10.0.0.1/8"]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Arc<[Network]>,
    includes_unix: bool,
}

/// A network: all addresses of one family with a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix_len: u8,
}

/// The reason why an entry of [`TrustedProxies`] is invalid. Displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxyError {
    /// Position of the entry.
    pub index: usize,
    entry: String,
    reason: String,
    help: String,
}

impl fmt::Display for TrustedProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trusted proxy {:?}: {}", self.entry, self.reason)
    }
}

impl std::error::Error for TrustedProxyError {}

impl TrustedProxyError {
    /// Returns the reason alone, without the entry.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns a way to fix the entry.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl TrustedProxies {
    /// Parses entries: addresses, networks such as `10.0.0.0/8` or `fd00::/8`, and `unix` for all Unix-domain sockets.
    ///
    /// # Errors
    /// For an entry of another form, a network with bits after its prefix, or more than
    /// [`TRUSTED_PROXIES_MAX`](crate::limits::TRUSTED_PROXIES_MAX) entries.
    pub fn new<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, TrustedProxyError> {
        let (mut networks, mut includes_unix) = (Vec::new(), false);
        for (index, entry) in entries.into_iter().enumerate() {
            let entry = entry.as_ref();
            let failed = |(reason, help)| TrustedProxyError { index, entry: entry.to_owned(), reason, help };
            if index >= TRUSTED_PROXIES_MAX {
                let reason = format!("more than {TRUSTED_PROXIES_MAX} entries");
                return Err(failed((reason, "name networks instead of addresses".to_owned())));
            }
            match entry {
                UNIX => includes_unix = true,
                text => networks.push(Network::parse(text).map_err(failed)?),
            }
        }
        Ok(Self { networks: networks.into(), includes_unix })
    }

    /// Returns true if the address is that of a trusted proxy. An IPv4 address counts as such in IPv6 form, too.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Returns true if connections of Unix-domain sockets are trusted.
    #[must_use]
    pub fn includes_unix(&self) -> bool {
        self.includes_unix
    }

    /// Returns true if nothing is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.includes_unix
    }
}

impl Network {
    fn parse(text: &str) -> Result<Self, (String, String)> {
        let invalid = || {
            let help = "write an address, a network such as 10.0.0.0/8, or \"unix\"".to_owned();
            ("invalid address or network".to_owned(), help)
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = IpAddr::from_str(address).map_err(|_| invalid())?;
        let bits = bits_of(address);
        let prefix_len = match prefix {
            None => bits,
            Some(prefix) => {
                let is_plain = prefix.len() <= 3 && prefix.bytes().all(|byte| byte.is_ascii_digit());
                prefix.parse().ok().filter(|len| is_plain && *len <= bits).ok_or_else(invalid)?
            }
        };
        let network = Self { address: masked(address, prefix_len), prefix_len };
        if network.address != address {
            let reason = "network has bits after its prefix".to_owned();
            return Err((reason, format!("write {}/{prefix_len}, or {address} alone", network.address)));
        }
        if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
            let reason = "IPv4 address in IPv6 form".to_owned();
            return Err((reason, format!("write {} in the form of IPv4", address.to_canonical())));
        }
        Ok(network)
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix_len) == self.address
    }
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Clears all bits after the prefix.
fn masked(address: IpAddr, prefix_len: u8) -> IpAddr {
    let cleared = u32::from(bits_of(address) - prefix_len);
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(cleared).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(cleared).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{TRUSTED_PROXIES_MAX, TrustedProxies};

    #[test]
    fn contains_the_addresses_of_its_networks() {
        let trusted = TrustedProxies::new(["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "::1", "0.0.0.0/32"]);
        let trusted = trusted.expect("valid entries");
        for (address, is_in) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("9.255.255.255", false),
            ("::ffff:10.1.2.3", true),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
            ("0.0.0.0", true),
            ("0.0.0.1", false),
            ("2001:db8:7fff::1", true),
            ("2001:db8:8000::1", false),
            ("::1", true),
            ("::2", false),
            ("a00::", false),
        ] {
            assert_eq!(trusted.contains(address.parse().expect("an address")), is_in, "{address}");
        }
        assert!(!trusted.includes_unix() && !trusted.is_empty());
    }

    #[test]
    fn a_prefix_of_0_contains_its_family_only() {
        let contains = |entry: &str, address: &str| {
            TrustedProxies::new([entry]).expect("valid").contains(address.parse().expect("an address"))
        };
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("::/0", "2001:db8::1") && !contains("::/0", "192.0.2.1"));
        assert!(!contains("::/0", "::ffff:192.0.2.1"), "an IPv4 address in IPv6 form");
    }

    #[test]
    fn trusts_unix_sockets_by_name_only() {
        assert!(TrustedProxies::new(["unix"]).is_ok_and(|trusted| trusted.includes_unix()));
        assert!(
            TrustedProxies::default().is_empty()
                && TrustedProxies::new([""; 0]).is_ok_and(|none| none.is_empty())
        );
    }

    #[test]
    fn rejects_entries_with_a_remedy() {
        for (entry, message, help) in [
            ("10.0.0.1/8", "network has bits after its prefix", "write 10.0.0.0/8, or 10.0.0.1 alone"),
            ("10.0.0.0/33", "invalid address or network", ""),
            ("10.0.0.0/+8", "invalid address or network", ""),
            ("10.0.0.0/", "invalid address or network", ""),
            ("fd00::/129", "invalid address or network", ""),
            ("10.0.0", "invalid address or network", ""),
            ("localhost", "invalid address or network", ""),
            ("Unix", "invalid address or network", ""),
            ("", "invalid address or network", ""),
            ("::ffff:10.0.0.0/104", "IPv4 address in IPv6 form", "write 10.0.0.0 in the form of IPv4"),
        ] {
            let error = TrustedProxies::new(["::1", entry]).expect_err(entry);
            assert_eq!((error.index, error.reason()), (1, message));
            assert!(
                error.help().starts_with(if help.is_empty() { "write an address" } else { help }),
                "{error:?}"
            );
        }
    }

    #[test]
    fn has_a_bounded_number_of_entries() {
        let entries =
            |count| (0..count).map(|number: usize| format!("10.0.{}.{}", number / 256, number % 256));
        assert!(TrustedProxies::new(entries(TRUSTED_PROXIES_MAX)).is_ok());
        let error = TrustedProxies::new(entries(TRUSTED_PROXIES_MAX + 1)).expect_err("one too many");
        assert_eq!((error.index, error.reason()), (TRUSTED_PROXIES_MAX, "more than 512 entries"));
    }
}
