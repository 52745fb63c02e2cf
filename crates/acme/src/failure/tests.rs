//! Tests of messages.

use instant_acme::{Error, Problem};

use super::{Failure, Scope};
use crate::options::ChallengeKind;

fn problem(kind: &str, detail: &str) -> Problem {
    Problem {
        r#type: Some(format!("urn:ietf:params:acme:error:{kind}")),
        detail: Some(detail.to_owned()),
        status: Some(403),
        subproblems: Vec::new(),
    }
}

#[test]
fn names_what_the_ca_could_not_reach() {
    let problem = problem("connection", "connection refused");
    let http = Failure::of_challenge("example.org", "token", ChallengeKind::Http01, &problem);
    assert_eq!(
        http.message,
        "no certificate for example.org: the CA could not reach \
         http://example.org/.well-known/acme-challenge/token (connection refused)",
    );
    assert!(http.help.starts_with("port 80 of this name must reach this server"));
    let tls = Failure::of_challenge("example.org", "token", ChallengeKind::TlsAlpn01, &problem);
    assert!(tls.message.ends_with("could not reach example.org:443 by TLS (connection refused)"), "{tls}");
    assert!(tls.help.starts_with("port 443 "));
}

#[test]
fn explains_rate_limits() {
    let error = Error::Api(problem("rateLimited", "too many certificates (5) already issued"));
    let failure = Failure::of_request(&error, Some(3600)).of_certificate("example.org");
    assert_eq!(
        failure.message,
        "no certificate for example.org: the CA limits the number of certificates and attempts \
         (too many certificates (5) already issued)",
    );
    assert_eq!((failure.retry_after, failure.scope), (Some(3600), Scope::Authority));
}

#[test]
fn the_words_of_a_ca_stay_on_one_short_line() {
    let text = format!("first\nsecond\u{1b}[31m {}", "x".repeat(10_000));
    let failure = Failure::of_request(&Error::Api(problem("malformed", &text)), None);
    assert!(failure.message.len() < 600);
    assert!(!failure.message.contains(char::is_control));
}

#[test]
fn an_unknown_account_has_its_own_scope() {
    let failure = Failure::of_request(&Error::Api(problem("accountDoesNotExist", "unknown")), None);
    assert_eq!(failure.scope, Scope::Account);
}
