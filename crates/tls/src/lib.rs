//! TLS sessions by rustls, for the driver's decorator `shearwater_io::secure`.
//!
//! A server has one [`SharedConfiguration`], each worker a [`TlsProvider`] of it, each connection a [`ServerSession`]. A
//! [`Configuration`] never changes. A reload makes a new one, from [`Pair`]s that were read anew, and replaces the old
//! one only if all of them fit; workers take it over at the beginning of a turn.
//!
//! A session gathers the ClientHello first, since its names decide on everything else: the certificate, the policy on
//! client certificates, and whether an ACME authority asks for a challenge. Then rustls does the handshake. Records are
//! passed to it one by one, so that a step of a session is a bounded amount of work.
//!
//! There is no session cache and no early data. Sessions resume by [`Tickets`], whose keys another process of the
//! server can take over, and several machines can share.
//!
//! ```
//! use std::sync::Arc;
//!
//! use shearwater_io::secure::{Provider, Session, Step};
//! use shearwater_tls::{
//!     Configuration, NamedCertificate, Options, SharedConfiguration, Tickets, TlsProvider, self_signed,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = 1_795_694_400;
//! let pair = self_signed(&["localhost", "127.0.0.1"], now)?; // or `Pair::read(certificate, key)?`
//! let certificate = NamedCertificate { names: vec!["localhost".to_owned()], pair: Some(pair), clients: None };
//! let options = Options {
//!     certificates: vec![certificate],
//!     plain_http_response: b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nUse https.\n".to_vec(),
//!     tickets: Some(Arc::new(Tickets::random(now)?)),
//!     ..Options::default()
//! };
//! let shared = SharedConfiguration::new(Configuration::new(options)?);
//!
//! // In each worker:
//! let mut provider = TlsProvider::new(shared);
//! provider.begin_turn(now);
//! let mut session = provider.accept(0);
//! let mut reply = Vec::new();
//! let opened = session.open(&mut b"GET / HTTP/1.1\r\n".to_owned(), &mut reply);
//! assert!(matches!(opened.step, Step::Failed(_)) && reply.starts_with(b"HTTP/1.1 400"));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod certificate;
mod challenges;
mod clients;
mod configuration;
mod crypto;
mod facts;
mod failure;
mod hello;
pub mod limits;
mod provider;
mod running;
mod seal;
mod self_signed;
mod session;
mod tickets;

pub use certificate::{Pair, PairError, PairProblem};
pub use challenges::Challenges;
pub use clients::{ClientAuthorities, ClientAuthoritiesError};
pub use configuration::{AlpnProtocol, Configuration, ConfigurationError, NamedCertificate, Options};
pub use facts::{CertificateFacts, KeyKind, MalformedCertificate};
pub use provider::{SharedConfiguration, TlsProvider};
pub use self_signed::{SelfSignedError, challenge_certificate, self_signed};
pub use session::ServerSession;
pub use shearwater_io::secure::Version;
pub use tickets::{ExportedKeys, TicketKeysError, Tickets};
