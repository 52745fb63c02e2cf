//! Limits of requests by client.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use shearwater::Response;
use shearwater::engine::Request;

use crate::client::{ClientKey, address, ask_to_wait};
use crate::clock::Clock;
use crate::meter::Meter;

/// A rate of requests, for each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests within [`per`](Self::per). At least 1.
    pub requests: u32,
    /// Time for so many requests. Longer than 0, at most a day.
    pub per: Duration,
    /// Requests that may arrive at once after a pause. At least 1.
    pub burst: u32,
}

impl Rate {
    /// Returns a rate of so many requests a second, `burst` of them at once.
    #[must_use]
    pub fn per_second(requests: u32, burst: u32) -> Self {
        Self { requests, per: Duration::from_secs(1), burst }
    }
}

/// The reason why a [`Rate`] is invalid. Displays as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateError(&'static str);

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for RateError {}

/// Limits the requests of each client; more get a `429` with `Retry-After` (RFC 6585 section 4).
///
/// A client is an IPv4 address, or a /64 network of IPv6. All workers share one table of
/// [`ADDRESSES_MAX`](crate::limits::ADDRESSES_MAX) clients, from which those are evicted that have their whole burst again.
/// Without any of those, further clients share allowances: a flood of addresses buys no more requests, and clients in the
/// table keep theirs. Clones share the table.
#[derive(Debug, Clone)]
pub struct RateLimit {
    rate: Rate,
    meter: Arc<Meter>,
}

impl RateLimit {
    /// Creates a limit.
    ///
    /// # Errors
    /// If a number of the rate is out of range.
    pub fn new(rate: Rate) -> Result<Self, RateError> {
        Self::with_clock(rate, Clock::default())
    }

    /// Creates a limit with a clock, for tests.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(rate: Rate, clock: Clock) -> Result<Self, RateError> {
        let Rate { requests, per, burst } = rate;
        match (requests, burst) {
            (0, _) => return Err(RateError("`requests` must be at least 1")),
            (_, 0) => return Err(RateError("`burst` must be at least 1")),
            _ if per.is_zero() || per > Duration::from_secs(86_400) => {
                return Err(RateError("`per` must be longer than 0, and at most a day"));
            }
            _ => {}
        }
        Ok(Self { rate, meter: Arc::new(Meter::new(per / requests, burst, clock)) })
    }

    /// Continues the table of another limit, for a reload, if it has the same rate.
    #[must_use]
    pub fn continuing(self, present: &Self) -> Self {
        if self.rate == present.rate { present.clone() } else { self }
    }

    /// Runs as a [guard](shearwater::Middleware::head).
    pub fn check(&self, request: &Request<'_>, response: &mut Response<'_>) -> ControlFlow<()> {
        match self.meter.take(ClientKey::of(address(request, response))) {
            Ok(_) => ControlFlow::Continue(()),
            Err(wait) => {
                ask_to_wait(response, 429, wait, "Too many requests from this address.\n");
                ControlFlow::Break(())
            }
        }
    }
}
