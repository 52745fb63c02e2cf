//! Metrics of a server, and the admin listener that serves them.
//!
//! [`Metrics`] counts every exchange of a server by its exchange hook ([`Server::on_exchange`]) and takes the rest from
//! its [`Control`]. Each worker counts into memory that only it writes, so a scrape needs nothing from a worker: no lock,
//! no locked instruction and no message. [`Admin`] is a second, small server with one worker of its own: `/metrics`,
//! `/health`, `/ready`, `/status.json` and `/status`.
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use shearwater::{App, Server};
//! use shearwater_metrics::{Admin, AdminOptions, Metrics};
//!
//! let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
//! let admin = Admin::start(AdminOptions::at(SocketAddr::from(([127, 0, 0, 1], 0))), &metrics)?;
//! let server = metrics.observe(Server::bind("127.0.0.1:0").workers(1));
//! let running = server.start(App::new())?;
//! metrics.serving(&running);
//! # running.control().drain(1000);
//! running.wait_for_control()?;
//! admin.end();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Server::on_exchange`]: shearwater::Server::on_exchange
//! [`Control`]: shearwater::Control

#![forbid(unsafe_code)]

mod admin;
mod certificates;
mod counts;
pub mod document;
mod exposition;
mod families;
pub mod format;
mod histogram;
mod history;
pub mod limits;
mod metrics;
mod page;
mod process;
mod sites;
mod snapshot;
mod verdict;

pub use admin::{Admin, AdminError, AdminOptions};
pub use certificates::{Certificate, CertificateState};
pub use exposition::{TextFormat, write_text};
pub use families::{FAMILIES, Family, Kind};
pub use histogram::BUCKETS_US;
pub use metrics::{CacheCounts, CompressionCounts, LogCounts, Metrics, Readiness};
pub use snapshot::Snapshot;
