//! Tests of requests, against a server on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use http::Request;
use instant_acme::{BodyWrapper, HttpClient as _};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::Client;
use crate::failure::Failure;
use crate::limits::{REQUEST_SECONDS_MAX, RESPONSE_BYTES_MAX};
use crate::options::Clock;

/// A server that sends the same response to everybody.
struct Server {
    url: String,
    root: tempfile::NamedTempFile,
}

impl Server {
    /// Starts one whose certificate begins in `year` and lasts for a year.
    async fn start(year: i32, response: String) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(year, 1, 1);
        params.not_after = rcgen::date_time_ymd(year + 50, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        let root = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&root, certificate.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/path", listener.local_addr().unwrap());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(connection).await else { continue };
                let mut request = vec![0; 4096];
                if stream.read(&mut request).await.is_ok() {
                    // A client that has seen enough closes.
                    drop(stream.write_all(response.as_bytes()).await);
                    drop(stream.shutdown().await);
                }
            }
        });
        Self { url, root }
    }

    fn client(&self) -> Client {
        Client::new(Some(self.root.path()), clock()).unwrap()
    }
}

/// A clock at the date that the tests of `Retry-After` count from.
fn clock() -> Clock {
    Clock::new(|| 784_111_777)
}

async fn get(client: &Client, url: &str) -> Result<Vec<u8>, Failure> {
    let request = Request::get(url).body(BodyWrapper::default()).unwrap();
    let response = client.request(request).await;
    let mut response = response.map_err(|error| Failure::of_request(&error, client.retry_after()))?;
    Ok(response.body.into_bytes().await.unwrap().to_vec())
}

fn response(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn receives_a_response_and_its_retry_after() {
    let server = Server::start(2020, response("Retry-After: 17\r\n", "content")).await;
    let client = server.client();
    assert_eq!(get(&client, &server.url).await.unwrap(), b"content");
    assert_eq!(client.retry_after(), Some(17));
    assert_eq!(client.for_order().retry_after(), None);
    let server = Server::start(2020, response("Retry-After: Sun, 06 Nov 1994 08:50:37 GMT\r\n", "")).await;
    let client = server.client();
    assert_eq!(get(&client, &server.url).await.unwrap(), b"");
    assert_eq!(client.retry_after(), Some(60));
}

#[tokio::test]
async fn limits_the_size_of_a_response() {
    let server = Server::start(2020, response("", &"x".repeat(RESPONSE_BYTES_MAX))).await;
    assert_eq!(get(&server.client(), &server.url).await.unwrap().len(), RESPONSE_BYTES_MAX);
    let server = Server::start(2020, response("", &"x".repeat(RESPONSE_BYTES_MAX + 1))).await;
    let failure = get(&server.client(), &server.url).await.unwrap_err();
    assert!(failure.message.contains("length limit exceeded"), "{failure}");
}

#[tokio::test]
async fn names_a_ca_that_it_does_not_trust() {
    let (server, other) =
        (Server::start(2020, String::new()).await, Server::start(2020, String::new()).await);
    let failure = get(&other.client(), &server.url).await.unwrap_err();
    assert!(failure.message.starts_with("cannot verify the CA at 127.0.0.1:"), "{failure}");
    assert!(failure.help.starts_with("for a private CA set `ca`"), "{}", failure.help);
}

#[tokio::test]
async fn suspects_the_clock_if_the_certificate_of_the_ca_is_not_valid() {
    for year in [1970, 2090] {
        let server = Server::start(year, String::new()).await;
        let failure = get(&server.client(), &server.url).await.unwrap_err();
        assert_eq!(failure.help, "check this machine's clock", "{failure}");
    }
}

#[tokio::test]
async fn names_a_ca_that_it_cannot_reach() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let failure =
        get(&Client::new(None, clock()).unwrap(), &format!("https://{address}/")).await.unwrap_err();
    assert!(failure.message.starts_with(&format!("cannot connect to the CA at {address}: ")), "{failure}");
    let failure = get(&Client::new(None, clock()).unwrap(), "http://ca.example/").await.unwrap_err();
    assert!(failure.message.starts_with("cannot connect to the CA at ca.example: "), "not https: {failure}");
}

#[tokio::test(start_paused = true)]
async fn limits_the_duration_of_a_request() {
    // It accepts, and never sends a byte. Tokio's clock jumps to the timeout as nothing else happens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let begin = tokio::time::Instant::now();
    let failure = get(&Client::new(None, clock()).unwrap(), &url).await.unwrap_err();
    assert!(failure.message.contains(&format!("within {REQUEST_SECONDS_MAX} s")), "{failure}");
    assert_eq!(begin.elapsed().as_secs(), REQUEST_SECONDS_MAX);
}

#[test]
fn rejects_a_file_without_roots() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let failure = Client::new(Some(file.path()), clock()).err().unwrap();
    assert!(failure.message.ends_with(": it contains no certificate"), "{failure}");
    let missing = PathBuf::from("/missing/root.pem");
    let failure = Client::new(Some(&missing), clock()).err().unwrap();
    assert!(
        failure.message.starts_with("cannot read the CA's root certificates /missing/root.pem: "),
        "{failure}"
    );
}
