//! The HTTP client of requests to the CA: one connection each, bounded in time and size.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::failure::Failure;
use crate::limits::{REQUEST_SECONDS_MAX, RESPONSE_BYTES_MAX};
use crate::options::Clock;

const AGENT: &str = concat!("shearwater/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// Sends the requests of one order.
#[derive(Clone)]
pub(crate) struct Client {
    tls: TlsConnector,
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
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), clock, retry_after: Arc::default() })
    }

    /// Returns a client with its own `Retry-After`.
    pub(crate) fn for_order(&self) -> Self {
        Self { retry_after: Arc::default(), ..self.clone() }
    }

    /// Returns the seconds that the last response asks to wait.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        Some(self.retry_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// Describes an error of the last request.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        Failure::of_request(error, self.retry_after())
    }

    /// Sends a request on a connection of its own, and receives the whole response.
    async fn send(self, mut request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, RequestError> {
        let uri = request.uri().clone();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        if uri.scheme_str() != Some("https") {
            return Err(RequestError::new(
                format!("the CA's URL {uri} isn't https"),
                "check the CA's directory",
            ));
        }
        let place = format!("{host}:{port}");
        let unreachable = |error: io::Error| RequestError::unreachable(&place, &error);
        let socket = TcpStream::connect((&*host, port)).await.map_err(unreachable)?;
        let name =
            ServerName::try_from(host.clone()).map_err(|error| unreachable(io::Error::other(error)))?;
        let stream =
            self.tls.connect(name, socket).await.map_err(|error| RequestError::unverified(&place, &error))?;
        let broken = |error: &dyn StdError| {
            RequestError::new(format!("the connection to the CA at {place} broke: {error}"), NETWORK_HELP)
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        let authority = uri.authority().map_or(&*host, http::uri::Authority::as_str);
        let authority = HeaderValue::from_str(authority).map_err(|error| broken(&error))?;
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        *request.uri_mut() = path.parse().map_err(|error: http::uri::InvalidUri| broken(&error))?;
        request.headers_mut().insert(HOST, authority);
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let exchange = async {
            let (parts, body) =
                sender.send_request(request).await.map_err(|error| broken(&error))?.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            Ok(Response::from_parts(parts, body.map_err(|error| broken(&*error))?.to_bytes()))
        };
        tokio::pin!(exchange);
        tokio::select! {
            biased;
            response = &mut exchange => response,
            // The connection may end first, with the response complete.
            _ = connection => exchange.await,
        }
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

    fn unreachable(place: &str, error: &io::Error) -> Self {
        Self::new(format!("cannot connect to the CA at {place}: {error}"), NETWORK_HELP)
    }

    fn unverified(place: &str, error: &io::Error) -> Self {
        use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let help = match cause {
            Some(rustls::Error::InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
            )) => "check this machine's clock",
            Some(rustls::Error::InvalidCertificate(_)) => {
                "for a private CA set `ca` to a PEM file with its root; otherwise something between intercepts TLS"
            }
            _ => NETWORK_HELP,
        };
        Self::new(format!("cannot verify the CA at {place}: {error}"), help)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl StdError for RequestError {}

#[cfg(test)]
mod tests;
