//! Upgrades (RFC 9110 section 7.8): the engine sends the `101`, then hands the connection over to the program. Of HTTP/2,
//! the `200`, and one end of a socket pair for the stream (RFC 8441).

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shearwater_http1::{Expectation, Head};
use shearwater_io::{Token, Waker};

use crate::server::panics;

/// A connection that was handed over after its `101`, or a stream of HTTP/2 after its `200`.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandedOver {
    /// Descriptor of the connection, in non-blocking mode. With TLS or HTTP/2, one end of a socket pair of the Unix domain,
    /// whose bytes the worker encrypts or frames.
    pub descriptor: OwnedFd,
    /// Bytes of the new protocol that were received with the request, before those still in the descriptor.
    pub unread: Vec<u8>,
    /// Guard to be kept as long as the descriptor is open. Once it is dropped, the last bytes towards the client have the
    /// server's deadlines, if the descriptor is one end of a socket pair.
    pub guard: ConnectionGuard,
}

/// Keeps a handed-over connection counted until it is dropped: for
/// [`Limits::connections_max`](crate::Limits::connections_max),
/// [`Limits::connections_per_address_max`](crate::Limits::connections_per_address_max) and
/// [`Totals`](crate::Totals).
///
/// The guard of a stream of HTTP/2 counts for none of these: the stream's connection does, as long as it is open.
#[must_use = "without it the connection is no longer counted"]
pub struct ConnectionGuard {
    pub(crate) token: Token,
    pub(crate) returned: Arc<Returned>,
}

impl fmt::Debug for ConnectionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionGuard").finish_non_exhaustive()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.returned.tokens().push(self.token);
        self.returned.waker.wake();
    }
}

/// Connections whose guards were dropped and whose slots are to be freed, at most one entry each.
pub(crate) struct Returned {
    tokens: Mutex<Vec<Token>>,
    waker: Waker,
}

impl Returned {
    pub(crate) fn tokens(&self) -> MutexGuard<'_, Vec<Token>> {
        // No panic is possible while it is locked.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handed-over connections of a worker.
pub(crate) struct HandedOvers {
    pub(crate) returned: Arc<Returned>,
    /// Connections that the driver is detaching, each once.
    pub(crate) detaching: Vec<Detaching>,
    /// Number of slots in use.
    pub(crate) open: usize,
}

/// A connection whose `101` was sent, while the driver detaches it.
pub(crate) struct Detaching {
    pub(crate) token: Token,
    pub(crate) taker: Taker,
    /// Input received so far.
    pub(crate) unread: Vec<u8>,
}

impl HandedOvers {
    /// Creates an empty set. `waker` wakes the worker.
    pub(crate) fn new(waker: Waker) -> Self {
        let returned = Arc::new(Returned { tokens: Mutex::default(), waker });
        Self { returned, detaching: Vec::new(), open: 0 }
    }

    /// Returns true if the driver is still detaching one.
    pub(crate) fn is_detaching(&self) -> bool {
        !self.detaching.is_empty()
    }

    pub(crate) fn take_detaching(&mut self, token: Token) -> Option<Detaching> {
        let at = self.detaching.iter().position(|detaching| detaching.token == token)?;
        Some(self.detaching.swap_remove(at))
    }

    /// Removes a connection that is closed.
    pub(crate) fn remove(&mut self, token: Token) {
        self.open -= 1;
        drop(self.take_detaching(token));
    }
}

/// Closure that takes over a connection. Dropping it never panics, even if its captures do.
pub(crate) struct Taker {
    take: Option<Box<dyn FnOnce(HandedOver)>>,
    /// The client expects a `100` before the `101` (RFC 9110 section 7.8).
    pub(crate) expects_continue: bool,
}

impl Taker {
    pub(crate) fn new(head: &Head<'_>, take: impl FnOnce(HandedOver) + 'static) -> Self {
        Self { take: Some(Box::new(take)), expects_continue: head.expectation() == Expectation::Continue }
    }

    pub(crate) fn take(mut self, handed: HandedOver) {
        if let Some(take) = self.take.take() {
            take(handed);
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let take = self.take.take();
        let _ = panics::catch(|| drop(take));
    }
}
