//! TLS sessions by rustls, for the driver's decorator `shearwater_io::secure`.

#![forbid(unsafe_code)]

mod certificate;
mod crypto;
mod facts;
pub mod limits;
mod self_signed;

pub use certificate::{Pair, PairError, PairProblem};
pub use facts::{CertificateFacts, KeyKind, MalformedCertificate};
pub use self_signed::{SelfSignedError, challenge_certificate, self_signed};
