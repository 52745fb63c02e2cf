//! Guards of requests: basic authentication, networks and rate limits.
//!
//! Each is [middleware](shearwater::Middleware), which runs before a request's body is received:
//!
//! ```no_run
//! use shearwater::{App, Server};
//! use shearwater_guards::{BasicAuth, Networks, Rate, RateLimit};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let staff = Networks::new(["10.0.0.0/8"], ["10.9.0.0/16"])?;
//! let users = BasicAuth::open("users.htpasswd", "Staff")?;
//! let limit = RateLimit::new(Rate::per_second(100, 200))?;
//! let app = App::new().with(limit).scope("/staff", |app| app.with(staff).with(users));
//! Server::bind("127.0.0.1:8080").run(app)?;
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

use std::ops::ControlFlow;

use shearwater::{Middleware, Request, Response};

/// Implements middleware by `check`.
macro_rules! middleware {
    ($($guard:ty)*) => {
        $(
            impl<S> Middleware<S> for $guard {
                fn head(&self, request: &Request<'_, S>, response: &mut Response<'_>) -> ControlFlow<()> {
                    self.check(request, response)
                }
            }
        )*
    };
}

middleware!(BasicAuth Networks RateLimit);
