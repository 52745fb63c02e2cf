//! TLS as sites see it: the redirect of requests that came in clear, HSTS (RFC 6797), and challenges of certificate authorities.
//!
//! The engine knows which requests came by TLS ([`Request::is_secure`]).

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use shearwater::engine::Request;
use shearwater::{Method, Response};
use shearwater_files::reply::errors::push_encoded;

use crate::headers::Changes;
use crate::hosts::{HostPattern, Hosts, bare, parse_host};
use crate::options::{Hsts, InvalidValue, invalid};

/// The header of HSTS. It is never sent in clear (RFC 6797 section 7.2).
pub(crate) const HSTS: &str = "Strict-Transport-Security";

/// The port of `https` URLs without a port.
pub(crate) const HTTPS_PORT: u16 = 443;

/// Path of challenges by HTTP (RFC 8555 section 8.3). They get their responses in clear.
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// Least `max-age` that browsers' preload lists accept.
const PRELOAD_AGE_MIN: Duration = Duration::from_secs(365 * 86_400);

/// Returns the header's value.
pub(crate) fn hsts_value(hsts: &Hsts) -> Result<String, InvalidValue> {
    let Hsts { max_age, subdomains, preload } = *hsts;
    if preload && !subdomains {
        let help = "add `subdomains = true`: browsers preload a name with all names beneath it";
        return Err(invalid("`preload` without `subdomains`", help));
    }
    if preload && max_age < PRELOAD_AGE_MIN {
        let help = "write `max_age = \"1y\"` or more: preload lists accept nothing shorter";
        return Err(invalid("`preload` with less than a year", help));
    }
    let subdomains = if subdomains { "; includeSubDomains" } else { "" };
    let preload = if preload { "; preload" } else { "" };
    Ok(format!("max-age={}{subdomains}{preload}", max_age.as_secs()))
}

/// Returns changes without that of HSTS.
pub(crate) fn without_hsts(changes: &Changes) -> Changes {
    changes.iter().filter(|(name, _)| !is_hsts(name)).cloned().collect()
}

/// Returns whether a header is that of HSTS.
pub(crate) fn is_hsts(name: &str) -> bool {
    name.eq_ignore_ascii_case(HSTS)
}

/// Rules of a site for requests in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClearRules {
    /// They are redirected.
    pub(crate) are_redirected: bool,
    /// Encrypted responses have HSTS, so that others need header rules without it.
    pub(crate) has_hsts: bool,
    /// Host of redirects for requests with a host of no site: the site's first name without a star.
    pub(crate) host: Option<Box<str>>,
    /// The site has no names: it serves any.
    pub(crate) has_any_host: bool,
}

/// Finds the content of a challenge by its token.
pub(crate) type FindChallenge = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Challenges of certificate authorities for all sites.
#[derive(Clone, Default)]
pub(crate) struct Challenges(pub(crate) Option<Arc<FindChallenge>>);

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Challenges").field(&self.0.is_some()).finish()
    }
}

impl Challenges {
    /// Responds to a known challenge.
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        let Some(find) = &self.0 else { return false };
        let token = request.path().strip_prefix(CHALLENGES).filter(|_| is_read(request));
        token.and_then(|token| find(token)).is_some_and(|content| {
            response.field("Cache-Control", "no-store").text(&content);
            true
        })
    }
}

/// Returns whether the path is that of challenges, which are never redirected.
pub(crate) fn is_challenge(request: &Request<'_>) -> bool {
    request.path().starts_with(CHALLENGES)
}

fn is_read(request: &Request<'_>) -> bool {
    matches!(request.method(), Method::Get | Method::Head)
}

impl ClearRules {
    /// Redirects a request to `https`. Returns `false` if it names no host that could be redirected to: a `400`.
    pub(crate) fn redirect(
        &self,
        (site, hosts, port): (u16, &Hosts, u16),
        request: &Request<'_>,
        location: &mut String,
        response: &mut Response<'_>,
    ) -> bool {
        let requested = request.head().host_bytes();
        let is_own = hosts.find_known(requested) == Some(site.into());
        let Some(host) = self.host_of(requested, is_own) else {
            response
                .status(400)
                .text("This site needs HTTPS, and the request names no host to redirect to.\n");
            return false;
        };
        location.clear();
        location.push_str("https://");
        location.push_str(host);
        if port != HTTPS_PORT {
            // Writing to a string can't fail.
            let _ = write!(location, ":{port}");
        }
        let path = request.path();
        push_encoded(location, if path.is_empty() { "/" } else { path });
        if let Some(query) = request.query() {
            location.push('?');
            push_encoded(location, query);
        }
        // Clients may change the method of a 301 to GET. Of a GET, old ones know it best.
        response.status(if is_read(request) { 301 } else { 308 }).field("Location", &*location);
        location.push('\n');
        response.text(location);
        true
    }

    /// Returns the host to redirect to: that of the request if it is the site's, else the site's first. Other hosts are sent
    /// back only to a site that serves any.
    fn host_of<'a>(&'a self, requested: &'a [u8], is_own: bool) -> Option<&'a str> {
        let requested = std::str::from_utf8(bare(requested)).ok();
        let requested = requested.filter(|name| matches!(parse_host(name), Ok(HostPattern::Exact(_))));
        match requested.filter(|_| is_own) {
            Some(own) => Some(own),
            None => self.host.as_deref().or(requested.filter(|_| self.has_any_host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ClearRules, hsts_value};
    use crate::options::Hsts;

    const YEAR: u64 = 365 * 86_400;

    #[test]
    fn formats_hsts() {
        for (seconds, subdomains, preload, value) in [
            (YEAR, false, false, "max-age=31536000"),
            (0, false, false, "max-age=0"),
            (300, true, false, "max-age=300; includeSubDomains"),
            (2 * YEAR, true, true, "max-age=63072000; includeSubDomains; preload"),
        ] {
            let hsts = Hsts { max_age: Duration::from_secs(seconds), subdomains, preload };
            assert_eq!(hsts_value(&hsts).as_deref(), Ok(value));
        }
    }

    #[test]
    fn rejects_preloading_that_lists_refuse() {
        for (seconds, subdomains, why) in
            [(YEAR, false, "without `subdomains`"), (YEAR - 1, true, "less than a year")]
        {
            let hsts = Hsts { max_age: Duration::from_secs(seconds), subdomains, preload: true };
            assert!(hsts_value(&hsts).expect_err(why).message.contains(why));
        }
    }

    #[test]
    fn sends_no_foreign_host_back() {
        let named = |host: Option<&str>, has_any_host| ClearRules {
            are_redirected: true,
            has_hsts: false,
            host: host.map(Into::into),
            has_any_host,
        };
        for (rules, requested, is_own, host) in [
            (named(Some("a.example"), false), "b.example", true, Some("b.example")),
            (named(Some("a.example"), false), "B.Example.:80", true, Some("B.Example")),
            (named(Some("a.example"), false), "evil.example", false, Some("a.example")),
            (named(Some("a.example"), false), "", false, Some("a.example")),
            (named(None, false), "evil.example", false, None),
            // Beneath a star: a host as RFC 3986 allows it, but no name.
            (named(None, false), "a'b.example", true, None),
            (named(None, true), "any.example:8080", false, Some("any.example")),
            (named(None, true), "[::1]:80", false, Some("[::1]")),
            (named(None, true), "192.0.2.1", false, Some("192.0.2.1")),
            (named(None, true), "a%2fb", false, None),
            (named(None, true), "*.example", false, None),
            (named(None, true), "", false, None),
        ] {
            assert_eq!(rules.host_of(requested.as_bytes(), is_own), host, "{requested}");
        }
    }
}
