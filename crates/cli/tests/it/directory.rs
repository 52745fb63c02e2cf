//! An ACME directory that refuses every account, and keeps the request for it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::authority::Issued;

/// The directory. Its thread ends with the tests.
pub(crate) struct AcmeDirectory {
    pub(crate) url: String,
    accounts: Receiver<Value>,
}

impl AcmeDirectory {
    pub(crate) fn start(issued: &Issued) -> Self {
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("a key");
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_no_client_auth()
                .with_single_cert(vec![issued.der().into()], key)
                .expect("a pair");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("https://localhost:{}", listener.local_addr().expect("its address").port());
        let (sender, accounts) = sync_channel(16);
        let url = format!("{base}/directory");
        thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("settings");
                let stream = StreamOwned::new(connection, socket.expect("a connection"));
                let (base, sender) = (base.clone(), sender.clone());
                thread::spawn(move || serve(stream, &base, &sender));
            }
        });
        Self { url, accounts }
    }

    /// Returns the request for an account, if there was one.
    pub(crate) fn account(&self) -> Option<Value> {
        self.accounts.try_recv().ok()
    }
}

/// Serves requests until the client closes.
fn serve(mut stream: StreamOwned<ServerConnection, TcpStream>, base: &str, accounts: &SyncSender<Value>) {
    while let Some((line, body)) = request(&mut stream) {
        let (status, content) = if line.contains(" /directory ") {
            let of = |name: &str| format!("{base}/{name}");
            let meta = json!({ "termsOfService": of("terms") });
            let urls = json!({
                "newNonce": of("nonce"), "newAccount": of("account"), "newOrder": of("order"),
                "revokeCert": of("revoke"), "keyChange": of("key"), "meta": meta,
            });
            ("200 OK", urls)
        } else if line.contains(" /account ") {
            let payload = decoded(&serde_json::from_slice(&body).expect("JSON"), "payload");
            accounts.send(payload).ok();
            (
                "403 Forbidden",
                json!({ "type": "urn:ietf:params:acme:error:unauthorized", "detail": "no accounts here" }),
            )
        } else {
            ("200 OK", json!({}))
        };
        let content = if line.starts_with("HEAD ") { String::new() } else { content.to_string() };
        let kind = if status.starts_with('2') { "application/json" } else { "application/problem+json" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nReplay-Nonce: bm9uY2U\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        if stream.write_all((head + &content).as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads the first line and the body of a request; `None` at the end of the connection.
fn request(stream: &mut impl std::io::Read) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: u64 = length.map_or(0, |(_, value)| value.parse().expect("a number"));
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body).ok()?;
    Some((head.lines().next().unwrap_or_default().to_owned(), body))
}

fn decoded(jws: &Value, part: &str) -> Value {
    let text = jws[part].as_str().expect("a part");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64")).expect("JSON")
}

/// Returns the key's name of an external account binding, and whether `key` has signed it.
pub(crate) fn binding(account: &Value, key: &[u8]) -> (String, bool) {
    let jws = &account["externalAccountBinding"];
    let protected = decoded(jws, "protected");
    assert_eq!(protected["alg"], "HS256");
    let part = |name: &str| jws[name].as_str().expect("a part");
    let signed = format!("{}.{}", part("protected"), part("payload"));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac(key, signed.as_bytes()));
    (protected["kid"].as_str().expect("a name").to_owned(), part("signature") == signature)
}

/// HMAC with SHA-256 (RFC 2104), of a key that isn't longer than a block.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |pad: u8| {
        let mut block = [pad; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}
