//! Certificates by ACME (RFC 8555): obtained and renewed by a thread of their own.
//!
//! A [`Manager`] keeps one certificate for each list of names. It calls a function with every [`Notice`]: a [`Certificate`] to use from now
//! on, or a [`Failure`] in words. The server has to serve the challenges of its [`Handle`]: HTTP-01 on port 80, TLS-ALPN-01 on port 443.
//!
//! ```no_run
//! use shearwater_acme::{LETS_ENCRYPT_STAGING, Manager, Notice, Options};
//!
//! let mut options = Options::new("/var/lib/shearwater".into(), vec![vec!["www.example.org".to_owned()]]);
//! options.directory = LETS_ENCRYPT_STAGING.to_owned();
//! options.terms_agreed = true;
//! let handle = Manager::start(options, |notice| match notice {
//!     Notice::Certificate(certificate) => println!("new: {:?}", certificate.pair.facts()),
//!     Notice::Failed(failure) => eprintln!("error: {failure}\nhelp: {}", failure.help),
//! })?;
//! assert_eq!(handle.challenges().http("unknown"), None);
//! # Ok::<(), shearwater_acme::Failure>(())
//! ```
//!
//! # Storage
//! `DIR/acme` has the folders `account`, `certificates`, `challenges` and `locks`, for this user alone. Instances on several machines may
//! share it: a lock (`flock`) lets one of them order a certificate, all of them serve its challenges, and all take the result from the
//! folder within a minute. The file system must have such locks, as local ones and NFS do.
//!
//! # Failures
//! Failed orders are retried with growing delays, which are stored. Failures of the storage and the clock are retried every minute.
//! Certificates in memory stay in use.

#![forbid(unsafe_code)]

mod account;
mod challenges;
mod client;
mod context;
mod failure;
mod keeper;
pub mod limits;
mod manager;
mod names;
mod options;
mod order;
mod record;
mod schedule;
mod status;
mod storage;

pub use challenges::Challenges;
pub use failure::Failure;
pub use manager::{Handle, Manager};
pub use names::unsuitable;
pub use options::{ChallengeKind, Clock, ExternalAccount, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Options};
pub use status::{Certificate, Notice, State, Status};
