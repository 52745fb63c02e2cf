//! An order: from the request to the certificate, in steps that another process may continue.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeStatus, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};
use shearwater_tls::{CertificateFacts, Pair};
use zeroize::Zeroizing;

use crate::account;
use crate::challenges::Served;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, Scope, kind};
use crate::limits::{CHALLENGE_POLL_SECONDS, NONCE_ATTEMPTS_MAX};
use crate::options::ChallengeKind;

/// Interval of polling an order, in seconds. The CA's `Retry-After` may lengthen it.
const POLL_SECONDS: u64 = 1;
/// Longest such interval that a CA may ask for.
const POLL_SECONDS_MAX: u64 = 30;

/// Time after which every instance has copied a challenge from the storage.
const SHARE_TIME: Duration = Duration::from_secs(2 * CHALLENGE_POLL_SECONDS);

/// Retries of a rejected nonce before a delay is added.
const QUICK_ATTEMPTS: usize = 10;
/// Delay before each later retry.
const NONCE_DELAY: Duration = Duration::from_millis(250);

/// A certificate that was issued.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) pair: Pair,
    /// Content of its file: the chain, then the key.
    pub(crate) pem: Zeroizing<Vec<u8>>,
}

/// The content of `NAME.order`, by which another process continues the order. It is written before the order is placed.
#[derive(Serialize, Deserialize)]
struct Pending {
    directory: String,
    names: Vec<String>,
    /// Private key, as PEM.
    key: Zeroizing<String>,
    /// URL of the order, once it is placed.
    url: Option<String>,
}

/// Orders a certificate, or continues the order that the storage has.
pub(crate) async fn obtain(
    context: &Context,
    client: &Client,
    names: &[String],
    kind: ChallengeKind,
    replaced: Option<&CertificateFacts>,
) -> Result<Issued, Failure> {
    let mut has_new_account = false;
    loop {
        let account = &account::open(context, client).await?;
        let (pending, key) = Pending::open(context, names)?;
        let mut ordering = Ordering { context, client, account, names, kind, pending, key };
        let failure = match ordering.run(replaced).await {
            Err(failure) if !failure.keeps_order() => failure,
            result => return result,
        };
        forget(context, &names[0])?;
        // The CA may have lost its accounts, as staging CAs do.
        if failure.scope != Scope::Account || std::mem::replace(&mut has_new_account, true) {
            return Err(failure);
        }
        account::discard(context, account.id())?;
    }
}

/// Discards the order in progress, if there is one.
pub(crate) fn forget(context: &Context, id: &str) -> Result<(), Failure> {
    context.storage.certificates.remove(&format!("{id}.order"))
}

impl Pending {
    /// Reads the order of these names by this CA, with its key, or stores a new one.
    fn open(context: &Context, names: &[String]) -> Result<(Self, KeyPair), Failure> {
        let directory = &context.options.directory;
        let content = context.storage.certificates.read(&format!("{}.order", names[0]))?.unwrap_or_default();
        let known = serde_json::from_slice(&content).ok();
        let known = known.filter(|known: &Self| known.names == names && known.directory == *directory);
        if let Some(known) = known
            && let Ok(key) = KeyPair::from_pem(&known.key)
        {
            return Ok((known, key));
        }
        let key = KeyPair::generate().map_err(|error| broken(&error))?;
        let text = key.serialize_pem().into();
        let new = Self { directory: directory.clone(), names: names.to_vec(), key: text, url: None };
        new.write(context)?;
        Ok((new, key))
    }

    fn write(&self, context: &Context) -> Result<(), Failure> {
        let content = to_json(self);
        context.storage.certificates.write(&format!("{}.order", self.names[0]), &content)
    }
}

/// One certificate's order.
struct Ordering<'a> {
    context: &'a Context,
    client: &'a Client,
    account: &'a Account,
    names: &'a [String],
    kind: ChallengeKind,
    pending: Pending,
    key: KeyPair,
}

impl Ordering<'_> {
    async fn run(&mut self, replaced: Option<&CertificateFacts>) -> Result<Issued, Failure> {
        let mut order = match self.resume().await? {
            Some(order) => order,
            None => self.place(replaced).await?,
        };
        let mut served: Option<Vec<Served>> = None;
        let mut is_finalized = false;
        loop {
            match order.state().status {
                OrderStatus::Pending if served.is_none() => {
                    served = Some(self.serve_challenges(&mut order).await?);
                }
                OrderStatus::Ready if !is_finalized => {
                    is_finalized = true;
                    self.finalize(&mut order).await?;
                    continue;
                }
                OrderStatus::Valid => return self.download(&mut order).await,
                OrderStatus::Invalid => return Err(self.explain(order).await),
                OrderStatus::Pending | OrderStatus::Ready | OrderStatus::Processing => {}
            }
            let delay =
                self.client.retry_after().unwrap_or(POLL_SECONDS).clamp(POLL_SECONDS, POLL_SECONDS_MAX);
            tokio::time::sleep(Duration::from_secs(delay)).await;
            let refreshed = with_nonces(async || order.refresh().await.map(drop)).await;
            self.client.check(refreshed)?;
        }
    }

    /// Returns the order that was interrupted, if the CA still has it.
    async fn resume(&mut self) -> Result<Option<Order>, Failure> {
        let Some(url) = self.pending.url.clone() else { return Ok(None) };
        let order = with_nonces(async || self.account.order(url.clone()).await).await;
        match self.client.check(order) {
            Ok(mut order) => {
                Ok(if order.state().status == OrderStatus::Invalid { None } else { Some(order) })
            }
            Err(failure) if failure.keeps_order() || failure.scope == Scope::Account => Err(failure),
            Err(_) => Ok(None),
        }
    }

    /// Places a new order, and records its URL.
    async fn place(&mut self, replaced: Option<&CertificateFacts>) -> Result<Order, Failure> {
        let identifiers: Vec<Identifier> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let mut new = NewOrder::new(&identifiers);
        if let Some(replaced) = replaced.and_then(identifier) {
            new = new.replaces(replaced);
        }
        let order = with_nonces(async || self.account.new_order(&new).await).await;
        let order = self.client.check(order)?;
        self.pending.url = Some(order.url().to_owned());
        self.pending.write(self.context)?;
        Ok(order)
    }

    /// Serves the challenges of all names that aren't verified yet, and asks the CA to verify them.
    async fn serve_challenges(&mut self, order: &mut Order) -> Result<Vec<Served>, Failure> {
        let kind = self.kind;
        let fetched = fetch_authorizations(order).await;
        self.client.check(fetched)?;
        let mut served = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = self.client.check(authorization)?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let name = authorization.identifier().to_string();
            let Some(challenge) = authorization.challenge(challenge_type(kind)) else {
                return Err(no_challenge(&name, kind));
            };
            let (challenges, proof) = (&self.context.challenges, challenge.key_authorization());
            served.push(challenges.serve(kind, &name, &challenge.token, proof.as_str())?);
        }
        // The CA may reach any instance.
        tokio::time::sleep(SHARE_TIME).await;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = self.client.check(authorization)?;
            if authorization.status == AuthorizationStatus::Pending
                && let Some(mut challenge) = authorization.challenge(challenge_type(kind))
                && challenge.status == ChallengeStatus::Pending
            {
                let ready = with_nonces(async || challenge.set_ready().await).await;
                self.client.check(ready)?;
            }
        }
        Ok(served)
    }

    async fn finalize(&mut self, order: &mut Order) -> Result<(), Failure> {
        let mut params = CertificateParams::new(self.names).map_err(|error| broken(&error))?;
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&self.key).map_err(|error| broken(&error))?;
        let finalized = with_nonces(async || order.finalize_csr(request.der()).await).await;
        self.client.check(finalized)
    }

    async fn download(&mut self, order: &mut Order) -> Result<Issued, Failure> {
        let chain = with_nonces(async || order.certificate().await).await;
        let chain = self.client.check(chain)?.unwrap_or_default();
        let key = &*self.pending.key;
        let pair = Pair::from_pem(chain.as_bytes(), key.as_bytes()).map_err(|error| {
            Failure::new(
                format!("the CA's certificate can't be used: {error}"),
                "it is ordered again by itself",
            )
        })?;
        if let Some(name) = self.names.iter().find(|name| !pair.facts().covers(name)) {
            return Err(Failure::new(
                format!("the CA's certificate isn't for {name}"),
                "ask the CA for the cause",
            ));
        }
        let separator = if chain.ends_with('\n') { "" } else { "\n" };
        Ok(Issued { pair, pem: [&*chain, separator, key].concat().into_bytes().into() })
    }

    /// Returns the cause of an order's end: the error of a challenge, or of the order.
    async fn explain(&mut self, mut order: Order) -> Failure {
        let other = order
            .state()
            .error
            .as_ref()
            .map(|problem| Failure::of_request(&Error::Api(problem.clone()), None));
        // An order keeps the authorizations that it has fetched: a fresh one is needed.
        let url = order.url().to_owned();
        let Ok(mut order) = with_nonces(async || self.account.order(url.clone()).await).await else {
            return other.unwrap_or_else(rejected);
        };
        drop(fetch_authorizations(&mut order).await);
        let mut authorizations = order.authorizations();
        while let Some(Ok(authorization)) = authorizations.next().await {
            let mut failed = authorization.challenges.iter();
            let failed = failed.find_map(|challenge| Some((challenge, challenge.error.as_ref()?)));
            if let Some((challenge, problem)) = failed {
                let name = authorization.identifier().to_string();
                return Failure::of_challenge(&name, &challenge.token, self.kind, problem);
            }
        }
        other.unwrap_or_else(rejected)
    }
}

/// Formats a private key with its facts. Its buffer doesn't grow, which would leave copies in freed memory.
pub(crate) fn to_json(value: &impl Serialize) -> Zeroizing<Vec<u8>> {
    let mut content = Zeroizing::new(Vec::with_capacity(16 << 10));
    // Writing to memory can't fail.
    drop(serde_json::to_writer(&mut *content, value));
    content
}

/// Fetches all authorizations of an order, which keeps them.
async fn fetch_authorizations(order: &mut Order) -> Result<(), Error> {
    with_nonces(async || {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            authorization?;
        }
        Ok(())
    })
    .await
}

/// Repeats a request whose nonce the CA rejected. The ACME library repeats it only twice.
pub(crate) async fn with_nonces<T>(mut request: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    for attempt in 1..NONCE_ATTEMPTS_MAX {
        match request().await {
            Err(Error::Api(problem)) if kind(&problem) == "badNonce" => {}
            result => return result,
        }
        if attempt >= QUICK_ATTEMPTS {
            tokio::time::sleep(NONCE_DELAY).await;
        }
    }
    request().await
}

/// Asks the CA when to renew a certificate (RFC 9773). Returns the window's two ends as Unix times, and the seconds until the next
/// question.
pub(crate) async fn suggested_renewal(
    account: &Account,
    facts: &CertificateFacts,
) -> Option<(u64, u64, u64)> {
    let identifier = identifier(facts)?;
    let (info, again) = with_nonces(async || account.renewal_info(&identifier).await).await.ok()?;
    let unix = |time: i64| u64::try_from(time).unwrap_or(0);
    let window = info.suggested_window;
    Some((unix(window.start.unix_timestamp()), unix(window.end.unix_timestamp()), again.as_secs()))
}

/// Returns the identifier of a certificate for its CA (RFC 9773, section 4.1).
fn identifier(facts: &CertificateFacts) -> Option<CertificateIdentifier<'static>> {
    Some(CertificateIdentifier {
        authority_key_identifier: URL_SAFE_NO_PAD.encode(facts.authority_key_id.as_ref()?).into(),
        serial: URL_SAFE_NO_PAD.encode(&facts.serial).into(),
    })
}

fn challenge_type(kind: ChallengeKind) -> ChallengeType {
    match kind {
        ChallengeKind::Http01 => ChallengeType::Http01,
        ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
    }
}

fn no_challenge(name: &str, kind: ChallengeKind) -> Failure {
    let (what, help) = match kind {
        ChallengeKind::Http01 => ("HTTP-01", "listen on port 443 too, so that TLS-ALPN-01 can be used"),
        ChallengeKind::TlsAlpn01 => ("TLS-ALPN-01", "listen on port 80 too, so that HTTP-01 can be used"),
    };
    Failure::new(format!("no certificate for {name}: the CA doesn't offer the challenge {what}"), help)
}

fn rejected() -> Failure {
    Failure::new("the CA rejected the order without a cause".to_owned(), "it is tried again by itself")
}

fn broken(error: &rcgen::Error) -> Failure {
    Failure::new(format!("cannot make a certificate request: {error}"), "report this as a bug")
}

#[cfg(test)]
mod tests;
