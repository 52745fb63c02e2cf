//! The HTTP client of requests to the CA: one connection each, bounded in time and size.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::iter;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Failure;
use crate::limits::{REQUEST_SECONDS_MAX, RESPONSE_BYTES_MAX};
use crate::options::Clock;

const AGENT: &str = concat!("shearwater/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// Sends the requests of one order.
#[derive(Clone)]
pub(crate) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    clock: Clock,
    /// `Retry-After` of the last response, in seconds; 0 if it had none.
    retry_after: Arc<AtomicU64>,
}

impl Client {
    /// Makes a client that verifies the CA by the certificates of a PEM file, or by those of the system.
    pub(crate) fn new(ca: Option<&Path>, clock: Clock) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = ca {
            let failed = |error: &dyn fmt::Display| {
                let message = format!("cannot read the CA's root certificates {}: {error}", path.display());
                Failure::new(message, "give a PEM file with the root that the CA's server is verified by")
            };
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
            for certificate in certificates {
                roots.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
            }
            if roots.is_empty() {
                return Err(failed(&"it contains no certificate"));
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                // Containers often have none.
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::new(format!("cannot use TLS: {error}"), "report this as a bug"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        // None is kept: the CA may close one just as the next request is sent.
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { http, clock, retry_after: Arc::default() })
    }

    /// Returns a client with its own `Retry-After`.
    pub(crate) fn for_order(&self) -> Self {
        Self { retry_after: Arc::default(), ..self.clone() }
    }

    /// Returns the seconds that the last response asks to wait.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        Some(self.retry_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// Describes the error of the last request, if it failed.
    pub(crate) fn check<T>(&self, result: Result<T, Error>) -> Result<T, Failure> {
        result.map_err(|error| Failure::of_request(&error, self.retry_after()))
    }

    /// Sends a request on a connection of its own, and receives the whole response.
    async fn send(self, mut request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, RequestError> {
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let uri = request.uri().clone();
        let response = self.http.request(request).await;
        let (parts, body) = response.map_err(|error| RequestError::unsent(&uri, &error))?.into_parts();
        let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|error| {
            RequestError::new(format!("cannot read the CA's response from {uri}: {error}"), NETWORK_HELP)
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }

    fn note_retry_after(&self, response: &Response<Bytes>) {
        let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let seconds = value.and_then(|text| {
            let until = |date: SystemTime| date.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let from_now = |date| until(date).saturating_sub(self.clock.now());
            text.trim().parse().ok().or_else(|| httpdate::parse_http_date(text).ok().map(from_now))
        });
        self.retry_after.store(seconds.unwrap_or(0), Ordering::Relaxed);
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        client.retry_after.store(0, Ordering::Relaxed);
        Box::pin(async move {
            let limit = Duration::from_secs(REQUEST_SECONDS_MAX);
            let uri = request.uri().clone();
            let response =
                tokio::time::timeout(limit, client.clone().send(request)).await.unwrap_or_else(|_| {
                    Err(RequestError::new(
                        format!("no response of the CA from {uri} within {REQUEST_SECONDS_MAX} s"),
                        NETWORK_HELP,
                    ))
                });
            let response = response.map_err(|error| Error::Other(Box::new(error)))?;
            client.note_retry_after(&response);
            let (parts, body) = response.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

const NETWORK_HELP: &str = "this server must reach the CA: check its network, DNS and firewall";

/// A request without a response.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl RequestError {
    fn new(message: String, help: &'static str) -> Self {
        Self { message, help }
    }

    fn unsent(uri: &Uri, error: &legacy::Error) -> Self {
        use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let causes: Vec<_> = iter::successors(Some(error as &(dyn StdError + 'static)), cause).collect();
        let root = causes.last().copied().unwrap_or(error);
        let what = match root.downcast_ref::<rustls::Error>() {
            Some(_) => "verify",
            None if error.is_connect() => "connect to",
            None => "get a response from",
        };
        let help = match root.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
            )) => "check this machine's clock",
            Some(rustls::Error::InvalidCertificate(_)) => {
                "for a private CA set `ca` to a PEM file with its root; otherwise something between intercepts TLS"
            }
            _ => NETWORK_HELP,
        };
        let place = uri.authority().map_or("", http::uri::Authority::as_str);
        Self::new(format!("cannot {what} the CA at {place}: {root}"), help)
    }
}

/// Returns the cause of an error. That of an I/O error isn't its source.
fn cause<'a>(error: &&'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let error: &'a (dyn StdError + 'static) = *error;
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.map(|inner| inner as &(dyn StdError + 'static)).or_else(|| error.source())
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl StdError for RequestError {}

#[cfg(test)]
mod tests;
