//! TLS sessions by rustls, for the driver's decorator `shearwater_io::secure`.

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
mod seal;
mod self_signed;
mod session;
mod tickets;

pub use certificate::{Pair, PairError, PairProblem};
pub use challenges::Challenges;
pub use clients::{ClientAuthorities, ClientAuthoritiesError};
pub use configuration::{Configuration, ConfigurationError, NamedCertificate, Options};
pub use facts::{CertificateFacts, KeyKind, MalformedCertificate};
pub use provider::{SharedConfiguration, TlsProvider};
pub use self_signed::{SelfSignedError, challenge_certificate, self_signed};
pub use session::TlsSession;
pub use tickets::{TicketKeysError, Tickets};
