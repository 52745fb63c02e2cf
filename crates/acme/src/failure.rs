//! Failures in words: the cause, and the remedy.

use std::fmt;

use instant_acme::{Error, Problem};
use serde::{Deserialize, Serialize};

use crate::client::RequestError;
use crate::limits::{LOCKED_SECONDS_MAX, ORDER_SECONDS_MAX};
use crate::options::ChallengeKind;

/// A failure in words. Its `Display` is the cause alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Cause: `no certificate for example.org: the CA …`.
    pub message: String,
    /// Remedy, for a `help:` line.
    pub help: String,
    /// Seconds after which the CA accepts another attempt, if it named a time.
    #[serde(default)]
    pub retry_after: Option<u64>,
    #[serde(skip)]
    pub(crate) scope: Scope,
}

/// The reach of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// It concerns one certificate.
    #[default]
    Certificate,
    /// The CA itself failed: other orders would fail too.
    Authority,
    /// The CA doesn't know the account.
    Account,
    /// The storage or the clock of this machine, unrelated to the order.
    Machine,
}

impl Failure {
    pub(crate) fn new(message: String, help: &str) -> Self {
        Self { message, help: help.to_owned(), retry_after: None, scope: Scope::default() }
    }

    /// An order that took too long.
    pub(crate) fn of_order_time() -> Self {
        let message = format!("the CA didn't complete the order within {ORDER_SECONDS_MAX} s");
        Self::new(message, "the order is resumed by itself").general(None)
    }

    /// A lock that another process has had for longer than any order takes.
    pub(crate) fn of_lock(name: &str) -> Self {
        let message =
            format!("another process has had the lock of {name} for more than {LOCKED_SECONDS_MAX} s");
        let help = "look for a server that hangs or is stopped; NFS keeps the locks of a machine that has crashed until it is back";
        Self::new(message, help).of_machine()
    }

    /// Another instance that replaces the certificate by one that this instance can't use.
    pub(crate) fn of_other_settings(name: &str) -> Self {
        Self::new(
            format!("another instance orders the certificate of {name} for other names, or from another CA"),
            "give all servers that share a storage the same names and `directory`",
        )
    }

    /// Makes it a failure of this machine.
    pub(crate) fn of_machine(self) -> Self {
        Self { scope: Scope::Machine, ..self }
    }

    /// Returns whether the order may still succeed, so that the next attempt continues it.
    pub(crate) fn keeps_order(&self) -> bool {
        matches!(self.scope, Scope::Authority | Scope::Machine)
    }

    /// Makes it a failure of the CA, with its `Retry-After` in seconds.
    fn general(self, retry_after: Option<u64>) -> Self {
        Self { scope: Scope::Authority, retry_after, ..self }
    }

    /// Puts the certificate in front of the cause.
    pub(crate) fn of_certificate(mut self, name: &str) -> Self {
        if !self.message.starts_with("no certificate for") {
            self.message = format!("no certificate for {name}: {}", self.message);
        }
        self
    }

    /// Describes an error of the ACME library.
    pub(crate) fn of_request(error: &Error, retry_after: Option<u64>) -> Self {
        match error {
            Error::Api(problem) => Self::of_problem(problem, retry_after),
            Error::Other(other) => match other.downcast_ref::<RequestError>() {
                Some(error) => Self::new(error.message.clone(), error.help).general(retry_after),
                None => Self::unexpected(other, retry_after),
            },
            error => Self::unexpected(error, retry_after),
        }
    }

    fn unexpected(error: &dyn fmt::Display, retry_after: Option<u64>) -> Self {
        Self::new(format!("the CA's response isn't ACME: {error}"), DIRECTORY_HELP).general(retry_after)
    }

    /// Describes a rejected request.
    fn of_problem(problem: &Problem, retry_after: Option<u64>) -> Self {
        let details = details(problem);
        let (what, help) = match kind(problem) {
            "rateLimited" => {
                let what = format!("the CA limits the number of certificates and attempts ({details})");
                return Self::new(
                    what,
                    "it is tried again by itself when the CA allows; for tests use the directory \
                    `letsencrypt-staging`",
                )
                .general(retry_after);
            }
            "rejectedIdentifier" => {
                ("the CA doesn't issue for this name", "use a public name that its policy allows")
            }
            "caa" => (
                "the name's CAA record forbids this CA",
                "add the CA to the CAA record, or remove the record",
            ),
            "externalAccountRequired" => (
                "the CA requires an external account",
                "set the key identifier and the HMAC key that it shows to its customers (`eab`)",
            ),
            "invalidContact" | "unsupportedContact" => {
                ("the CA rejected the e-mail address", "correct `email`")
            }
            "userActionRequired" => {
                ("the CA's terms of service have changed", "read and accept them at the CA's site")
            }
            _ => ("the CA rejected the request", "its own words name the cause; it is tried again by itself"),
        };
        let scope = match kind(problem) {
            "accountDoesNotExist" => Scope::Account,
            "badNonce" => Scope::Authority,
            _ if problem.status.is_some_and(|status| status >= 500) => Scope::Authority,
            _ => Scope::Certificate,
        };
        Self { retry_after, scope, ..Self::new(format!("{what} ({details})"), help) }
    }

    /// Describes a challenge that the CA couldn't verify.
    pub(crate) fn of_challenge(name: &str, token: &str, challenge: ChallengeKind, problem: &Problem) -> Self {
        let (target, port) = match challenge {
            ChallengeKind::Http01 => (format!("http://{name}/.well-known/acme-challenge/{token}"), 80),
            ChallengeKind::TlsAlpn01 => (format!("{name}:443 by TLS"), 443),
        };
        let (what, help) = match kind(problem) {
            "connection" => (
                format!("the CA could not reach {target}"),
                format!(
                    "port {port} of this name must reach this server: check its DNS records, firewalls and routers"
                ),
            ),
            "dns" => (
                format!("the CA found no address of {name}"),
                "add an A or AAAA record that points to this server".to_owned(),
            ),
            "caa" => (
                format!("the CAA record of {name} forbids this CA"),
                "add the CA to the CAA record, or remove the record".to_owned(),
            ),
            _ => (
                format!("the CA got another response than this server's from {target}"),
                format!(
                    "port {port} of this name must reach this server, not another one or a proxy that ends TLS"
                ),
            ),
        };
        Self::new(format!("no certificate for {name}: {what} ({})", details(problem)), &help)
    }
}

const DIRECTORY_HELP: &str = "check the URL of the CA's directory; it is tried again by itself";

/// Returns the last part of a problem's type: `rateLimited`.
pub(crate) fn kind(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default()
}

/// Returns the CA's own words, on one line.
fn details(problem: &Problem) -> String {
    let parts = problem.subproblems.iter().filter_map(|part| part.detail.as_deref());
    let text = problem.detail.as_deref().into_iter().chain(parts).collect::<Vec<_>>().join("; ");
    let text: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(500).collect();
    if text.is_empty() { kind(problem).to_owned() } else { text }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests;
