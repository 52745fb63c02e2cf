//! Guards of sites and routes, and what browsers of other origins may do.

use std::ops::ControlFlow;

use shearwater::engine::{FieldLines, GuardsPassed, KnownField, Request};
use shearwater::{Cors, Response};
use shearwater_guards::{BasicAuth, Networks, RateLimit};

use crate::headers::{self, Changes, sets};
use crate::options::{InvalidValue, invalid};
use crate::responses::ALLOW;

/// Guards of a site or route, in the order in which they run.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Networks whose clients are served.
    pub networks: Option<Networks>,
    /// A limit of requests. Clones share its table.
    pub rate_limit: Option<RateLimit>,
    /// A policy for pages of other origins. Preflights get their response before a password is asked for.
    pub cors: Option<SiteCors>,
    /// Users. Clones share what was verified.
    pub basic_auth: Option<BasicAuth>,
}

/// A CORS policy with the methods that pages may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteCors {
    /// The policy.
    pub policy: Cors,
    /// Methods, separated by commas.
    pub methods: String,
}

impl Guards {
    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_none()
            && self.rate_limit.is_none()
            && self.cors.is_none()
            && self.basic_auth.is_none()
    }

    /// Continues the tables of present guards that are the same.
    pub(crate) fn continue_from(&mut self, present: &Self) {
        if let (Some(own), Some(present)) = (&mut self.rate_limit, &present.rate_limit) {
            *own = own.clone().continuing(present);
        }
        if let (Some(own), Some(present)) = (&mut self.basic_auth, &present.basic_auth) {
            *own = own.clone().continuing(present);
        }
    }
}

/// Guards of some routes of a site.
pub(crate) struct PlannedGuards {
    /// Key of the table that they were written in, relative to that of the site.
    pub(crate) key: String,
    pub(crate) guards: Guards,
    /// Headers of a preflight response, if it is allowed.
    preflight: FieldLines,
    /// Numbers of header rules by origin, if some are listed.
    by_origin: Vec<(Box<[u8]>, Option<u32>)>,
}

impl PlannedGuards {
    /// Plans guards. `number` returns the number of header changes in addition to `changes`; the first result is that of
    /// pages whose origin isn't listed.
    pub(crate) fn new(
        key: String,
        guards: Guards,
        changes: &Changes,
        mut number: impl FnMut(&Changes) -> Option<u32>,
    ) -> Result<(Self, Option<u32>), InvalidValue> {
        let mut planned = Self { key, guards, preflight: FieldLines::new(), by_origin: Vec::new() };
        let Some(SiteCors { policy, methods }) = planned.guards.cors.clone() else {
            return Ok((planned, number(changes)));
        };
        policy.check().map_err(|why| invalid(why.split("; help: ").next().unwrap_or(&why), help_of(&why)))?;
        if sets(changes, "Access-Control-Allow-Origin") {
            return Err(invalid(
                "both `cors` and the header Access-Control-Allow-Origin",
                "remove one of them",
            ));
        }
        for (name, value) in policy.preflight_headers(&methods) {
            planned.preflight.push(name, &value).map_err(|why| invalid(why, ""))?;
        }
        let with = |headers: Vec<(&'static str, String)>| {
            let added = headers.into_iter().map(|(name, value)| (name.to_owned(), Some(value)));
            headers::merge(changes, added.collect())
        };
        let Some(origins) = policy.listed_origins() else {
            return Ok((planned, number(&with(policy.response_headers(None)))));
        };
        let is_vary = |name: &str| name.eq_ignore_ascii_case("Vary");
        let own = changes.iter().find(|(name, _)| is_vary(name)).and_then(|(_, value)| value.as_deref());
        let varies = ("Vary", own.map_or("Origin".to_owned(), |own| format!("{own}, Origin")));
        for origin in origins {
            let mut headers = policy.response_headers(Some(origin));
            headers.push(varies.clone());
            planned.by_origin.push((origin.as_bytes().into(), number(&with(headers))));
        }
        let others = number(&with(vec![varies]));
        Ok((planned, others))
    }

    /// Returns the header rules of a request from a page of a listed origin.
    pub(crate) fn header_rules(&self, request: &Request<'_>) -> Option<u32> {
        let origin = request.head().field(KnownField::Origin).filter(|_| !self.by_origin.is_empty())?;
        self.by_origin.iter().find(|(listed, _)| **listed == *origin)?.1
    }

    /// Runs the guards. Returns the number passed if all let the request pass.
    pub(crate) fn check(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        response.guards(
            request,
            [|request: &Request<'_>, response: &mut Response<'_>| self.check_all(request, response)],
        )
    }

    /// Runs the guards as one: only the last of them waits.
    fn check_all(&self, request: &Request<'_>, response: &mut Response<'_>) -> ControlFlow<()> {
        let Guards { networks, rate_limit, cors, basic_auth } = &self.guards;
        if let Some(networks) = networks {
            networks.check(request, response)?;
        }
        // Browsers send a preflight for their own sake: it doesn't count as a request of the page.
        if cors.is_some() && Cors::is_preflight(request) {
            self.respond_to_preflight(request, response);
            return ControlFlow::Break(());
        }
        if let Some(rate_limit) = rate_limit {
            rate_limit.check(request, response)?;
        }
        match basic_auth {
            Some(basic_auth) => basic_auth.check(request, response),
            None => ControlFlow::Continue(()),
        }
    }

    fn respond_to_preflight(&self, request: &Request<'_>, response: &mut Response<'_>) {
        response.status(204).field("Allow", ALLOW);
        // The header rules allow the origin.
        if self.by_origin.is_empty() || self.header_rules(request).is_some() {
            response.lines(&self.preflight);
        }
    }
}

fn help_of(why: &str) -> &str {
    why.split_once("; help: ").map_or("", |(_, help)| help)
}

/// Headers of `security_headers`: types are not guessed, other sites get no more than the origin in `Referer`, and no frame of
/// another site.
const SECURITY_HEADERS: [(&str, &str); 3] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Frame-Options", "SAMEORIGIN"),
];

/// Returns changes with the headers that restrict browsers, except for those that are changed already.
pub(crate) fn restricting(security_headers: bool, changes: Changes) -> Changes {
    let added = SECURITY_HEADERS.iter().filter(|_| security_headers);
    let added = added.map(|&(name, value)| (name.to_owned(), Some(value.to_owned()))).collect();
    headers::merge(&added, changes)
}

/// Returns the value of `Content-Disposition` that has a file saved (RFC 6266, RFC 8187).
///
/// A name beyond ASCII is in both parameters: as it is in `filename*`, and for old clients with underscores in `filename`.
pub(crate) fn attachment(name: Option<&str>) -> String {
    let Some(name) = name else { return "attachment".to_owned() };
    let is_plain = |letter: char| (' '..='~').contains(&letter) && !matches!(letter, '"' | '\\' | '%');
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if plain == name {
        return format!("attachment; filename=\"{name}\"");
    }
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::attachment;

    #[test]
    fn names_a_download() {
        for (name, value) in [
            (None, "attachment"),
            (Some("report.pdf"), "attachment; filename=\"report.pdf\""),
            (Some("a b.pdf"), "attachment; filename=\"a b.pdf\""),
            (Some("ä\".pdf"), "attachment; filename=\"__.pdf\"; filename*=UTF-8''%C3%A4%22.pdf"),
            (Some("50%.txt"), "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"),
        ] {
            assert_eq!(attachment(name), value);
        }
    }
}
