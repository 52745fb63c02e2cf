//! Guards of requests: basic authentication, networks and rate limits.
//!
//! Each is a step for [`App::guard`](shearwater::App::guard), which runs before a request's body is received:
//!
//! ```no_run
//! use shearwater::{App, Server};
//! use shearwater_guards::{BasicAuth, Networks, Rate, RateLimit};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let staff = Networks::new(["10.0.0.0/8"], ["10.9.0.0/16"])?;
//! let users = BasicAuth::open("users.htpasswd", "Staff")?;
//! let limit = RateLimit::new(Rate::per_second(100, 200))?;
//! let mut app = App::new();
//! app.guard(move |request, response| limit.check(request, response));
//! app.scope("/staff", |app| {
//!     app.guard(move |request, response| staff.check(request, response));
//!     app.guard(move |request, response| users.check(request, response));
//! });
//! Server::new("127.0.0.1:8080").run_app(app)?;
//! # Ok(())
//! # }
//! ```
//!
//! Clients are distinguished by their addresses, behind trusted proxies by those that the proxies pass on.

#![forbid(unsafe_code)]

mod attempt;
mod basic_auth;
mod client;
mod clock;
mod htpasswd;
pub mod limits;
mod meter;
mod networks;
mod rate_limit;
mod verified;

pub use basic_auth::BasicAuth;
pub use clock::Clock;
pub use htpasswd::{HtpasswdError, Users};
pub use networks::Networks;
pub use rate_limit::{Rate, RateError, RateLimit};
