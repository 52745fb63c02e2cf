//! An order: from the request to the certificate, in steps that another process may continue.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeStatus, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use shearwater_tls::{CertificateFacts, Pair};
use zeroize::Zeroizing;

use crate::challenges::Served;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Failure, kind};
use crate::limits::{CHALLENGE_POLL_SECONDS, NONCE_ATTEMPTS_MAX};
use crate::options::ChallengeKind;
use crate::record::{PendingOrder, Record};

/// Seconds between two questions for the state of an order, unless the CA wants more.
const POLL_SECONDS: u64 = 1;
/// Longest such interval that a CA may ask for.
const POLL_SECONDS_MAX: u64 = 30;

/// Time after which every instance has copied a challenge from the storage.
const SHARE_TIME: Duration = Duration::from_secs(2 * CHALLENGE_POLL_SECONDS);

/// Repetitions for a rejected nonce without a delay.
const QUICK_ATTEMPTS: usize = 10;
/// Delay of the further ones.
const NONCE_DELAY: Duration = Duration::from_millis(250);

/// A certificate that was issued.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) pair: Pair,
    /// Content of its file: the chain, then the key.
    pub(crate) pem: Zeroizing<Vec<u8>>,
}

/// One certificate's order.
pub(crate) struct Ordering<'a> {
    pub(crate) context: &'a Context,
    pub(crate) client: &'a Client,
    pub(crate) account: &'a Account,
    pub(crate) names: &'a [String],
    pub(crate) record: &'a mut Record,
    /// The certificate that is renewed.
    pub(crate) replaced: Option<&'a CertificateFacts>,
}

impl Ordering<'_> {
    fn id(&self) -> &str {
        &self.names[0]
    }

    /// Obtains the certificate, by the pending order if there is one.
    pub(crate) async fn run(&mut self) -> Result<Issued, Failure> {
        let mut order = match self.resume().await? {
            Some(order) => order,
            None => self.begin().await?,
        };
        let kind = self.challenge_kind();
        let mut served: Option<Vec<Served>> = None;
        let mut is_finalized = false;
        loop {
            match order.state().status {
                OrderStatus::Pending if served.is_none() => {
                    served = Some(self.serve_challenges(&mut order, kind).await?);
                }
                OrderStatus::Ready if !is_finalized => {
                    is_finalized = true;
                    self.finalize(&mut order).await?;
                    continue;
                }
                OrderStatus::Valid => return self.download(&mut order).await,
                OrderStatus::Invalid => return Err(self.explain(order, kind).await),
                OrderStatus::Pending | OrderStatus::Ready | OrderStatus::Processing => {}
            }
            let delay =
                self.client.retry_after().unwrap_or(POLL_SECONDS).clamp(POLL_SECONDS, POLL_SECONDS_MAX);
            tokio::time::sleep(Duration::from_secs(delay)).await;
            let refreshed = with_nonces(async || order.refresh().await.map(drop)).await;
            self.check(refreshed)?;
        }
    }

    /// Returns the challenge of this attempt: each failure changes it, so that one that can't work isn't the only one.
    fn challenge_kind(&self) -> ChallengeKind {
        let kinds = &self.context.options.challenges;
        kinds[self.record.failures as usize % kinds.len()]
    }

    /// Turns an error into a failure, and discards the order if the CA rejected a request of it.
    fn check<T>(&mut self, result: Result<T, Error>) -> Result<T, Failure> {
        result.map_err(|error| {
            if let Error::Api(problem) = &error
                && problem.status.is_none_or(|status| status < 500)
                && !matches!(kind(problem), "rateLimited" | "badNonce")
            {
                self.record.order = None;
            }
            self.client.failure(&error)
        })
    }

    /// Loads the order that was interrupted, if it is for the same names and its key is stored.
    async fn resume(&mut self) -> Result<Option<Order>, Failure> {
        let directory = &self.context.options.directory;
        let is_fitting =
            |pending: &PendingOrder| pending.names == self.names && pending.directory == *directory;
        let Some(pending) = self.record.order.take().filter(is_fitting) else { return Ok(None) };
        if self.context.storage.certificates.read(&self.key_file())?.is_none() {
            return Ok(None);
        }
        let url = pending.url.clone();
        self.record.order = Some(pending);
        match with_nonces(async || self.account.order(url.clone()).await).await {
            Ok(mut order) => {
                Ok(if order.state().status == OrderStatus::Invalid { None } else { Some(order) })
            }
            Err(Error::Api(problem))
                if !matches!(kind(&problem), "rateLimited" | "badNonce" | "accountDoesNotExist") =>
            {
                Ok(None)
            }
            Err(error) => Err(self.client.failure(&error)),
        }
    }

    /// Stores a new key, places a new order, and records it.
    async fn begin(&mut self) -> Result<Order, Failure> {
        let key = KeyPair::generate().map_err(|error| broken(&error))?;
        let folder = &self.context.storage.certificates;
        folder.write(&self.key_file(), Zeroizing::new(key.serialize_pem()).as_bytes())?;
        let identifiers: Vec<Identifier> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let mut new = NewOrder::new(&identifiers);
        let replaced = self.replaced.filter(|_| self.record.plan.is_suggested).and_then(identifier);
        let has_replaced = replaced.is_some();
        if let Some(replaced) = replaced {
            new = new.replaces(replaced);
        }
        let mut order = with_nonces(async || self.account.new_order(&new).await).await;
        if has_replaced && matches!(&order, Err(Error::Api(problem)) if kind(problem) == "alreadyReplaced") {
            let new = NewOrder::new(&identifiers);
            order = with_nonces(async || self.account.new_order(&new).await).await;
        }
        let order = self.check(order)?;
        self.record.order = Some(PendingOrder {
            url: order.url().to_owned(),
            names: self.names.to_vec(),
            directory: self.context.options.directory.clone(),
        });
        self.record.write(folder, self.id())?;
        Ok(order)
    }

    /// Serves the challenges of all names that aren't verified yet, and asks the CA to verify them.
    async fn serve_challenges(
        &mut self,
        order: &mut Order,
        kind: ChallengeKind,
    ) -> Result<Vec<Served>, Failure> {
        let fetched = fetch_authorizations(order).await;
        self.check(fetched)?;
        let mut served = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = self.check(authorization)?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let name = authorization.identifier().to_string();
            let Some(challenge) = authorization.challenge(challenge_type(kind)) else {
                self.record.order = None;
                return Err(no_challenge(&name, kind));
            };
            let (challenges, proof) = (&self.context.challenges, challenge.key_authorization());
            served.push(challenges.serve(kind, &name, &challenge.token, proof.as_str())?);
        }
        // The CA may reach any instance.
        tokio::time::sleep(SHARE_TIME).await;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = self.check(authorization)?;
            if authorization.status == AuthorizationStatus::Pending
                && let Some(mut challenge) = authorization.challenge(challenge_type(kind))
                && challenge.status == ChallengeStatus::Pending
            {
                let ready = with_nonces(async || challenge.set_ready().await).await;
                self.check(ready)?;
            }
        }
        Ok(served)
    }

    async fn finalize(&mut self, order: &mut Order) -> Result<(), Failure> {
        let (key, _) = self.key()?;
        let mut params = CertificateParams::new(self.names).map_err(|error| broken(&error))?;
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&key).map_err(|error| broken(&error))?;
        let finalized = with_nonces(async || order.finalize_csr(request.der()).await).await;
        self.check(finalized)
    }

    async fn download(&mut self, order: &mut Order) -> Result<Issued, Failure> {
        let chain = with_nonces(async || order.certificate().await).await;
        let chain = self.check(chain)?.unwrap_or_default();
        let (_, key) = self.key()?;
        let pair = Pair::from_pem(chain.as_bytes(), key.as_bytes()).map_err(|error| {
            self.record.order = None;
            Failure::new(
                format!("the CA's certificate can't be used: {error}"),
                "it is ordered again by itself",
            )
        })?;
        if let Some(name) = self.names.iter().find(|name| !pair.facts().covers(name)) {
            self.record.order = None;
            return Err(Failure::new(
                format!("the CA's certificate isn't for {name}"),
                "ask the CA for the cause",
            ));
        }
        let separator = if chain.ends_with('\n') { "" } else { "\n" };
        Ok(Issued { pair, pem: [&*chain, separator, &key].concat().into_bytes().into() })
    }

    /// Returns the cause of an order's end: the error of a challenge, or of the order.
    async fn explain(&mut self, mut order: Order, kind: ChallengeKind) -> Failure {
        self.record.order = None;
        let other = order
            .state()
            .error
            .as_ref()
            .map(|problem| Failure::of_request(&Error::Api(problem.clone()), None));
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
                return Failure::of_challenge(&name, &challenge.token, kind, problem);
            }
        }
        other.unwrap_or_else(rejected)
    }

    fn key_file(&self) -> String {
        format!("{}.key", self.id())
    }

    /// Reads the key of the order, and its PEM text.
    fn key(&mut self) -> Result<(KeyPair, Zeroizing<String>), Failure> {
        let content = self.context.storage.certificates.read(&self.key_file())?.unwrap_or_default();
        let text = Zeroizing::new(str::from_utf8(&content).unwrap_or_default().to_owned());
        match KeyPair::from_pem(&text) {
            Ok(key) => Ok((key, text)),
            Err(_) => {
                self.record.order = None;
                let message = "the key of the pending order is lost".to_owned();
                Err(Failure::new(message, "a new order follows by itself"))
            }
        }
    }
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

/// Returns the identifier of a certificate for its CA (RFC 9773, section 4.1).
pub(crate) fn identifier(facts: &CertificateFacts) -> Option<CertificateIdentifier<'static>> {
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
