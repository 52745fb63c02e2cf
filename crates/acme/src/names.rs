//! The names that certificates are ordered for.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::failure::Failure;
use crate::limits::{CERTIFICATES_MAX, NAMES_PER_CERTIFICATE_MAX};

/// Last labels that no public CA gives certificates for (RFC 6761, RFC 6762, RFC 9476).
const PRIVATE: [&str; 8] = ["alt", "arpa", "example", "internal", "invalid", "local", "localhost", "test"];

/// Returns the reason why no certificate can be ordered for a name, and what to do. The name is in lower case, without a dot at its end.
///
/// `is_public` tells whether the CA is one of the web, which gives certificates for public names alone.
#[must_use]
pub fn unsuitable(name: &str, is_public: bool) -> Option<(&'static str, &'static str)> {
    let own = "\"self-signed\" is for trying; a pair of your own works for every name";
    if name.starts_with("*.") {
        return Some((
            "no certificate by itself for a wildcard",
            "authorities check such names in the DNS (DNS-01), which isn't supported: name each host, or use a pair of your own",
        ));
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Some(("no certificate by itself for an IP address", own));
    }
    // A file of the storage has this name.
    if name.len() > 253 || !name.split('.').all(is_label) {
        let help = "use letters, digits, `-` and `.`, and Punycode for others: `xn--…`";
        return Some(("no certificate by itself: it isn't a host name", help));
    }
    let is_private = !name.contains('.') || PRIVATE.contains(&last);
    (is_public && is_private).then_some(("public authorities give no certificate for this name", own))
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(is_allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Checks the names of all certificates: their number, their form, and that each occurs once.
pub(crate) fn check(certificates: &[Vec<String>]) -> Result<(), Failure> {
    if certificates.len() > CERTIFICATES_MAX {
        return Err(Failure::new(
            format!("found {} certificates, expected at most {CERTIFICATES_MAX}", certificates.len()),
            "put several names into one certificate",
        ));
    }
    let mut seen = HashSet::new();
    for names in certificates {
        if names.is_empty() || names.len() > NAMES_PER_CERTIFICATE_MAX {
            let most = NAMES_PER_CERTIFICATE_MAX;
            return Err(Failure::new(
                format!("found {} names for a certificate, expected 1 to {most}", names.len()),
                "divide the site's hosts among several sites",
            ));
        }
        for name in names {
            if let Some((what, help)) = unsuitable(name, false) {
                return Err(Failure::new(format!("{name:?}: {what}"), help));
            }
            if !seen.insert(name) {
                return Err(Failure::new(
                    format!("found {name} in two certificates"),
                    "each name needs one certificate: remove it from one of the sites",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
