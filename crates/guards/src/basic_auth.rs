//! HTTP basic authentication (RFC 7617) against an htpasswd file.

use std::fmt;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shearwater::Response;
use shearwater::engine::{KnownField, OffloadPool, Request, lower_thread_priority};

use crate::attempt::{Attempt, Attempts};
use crate::client::{ClientKey, address, ask_to_wait};
use crate::clock::{Clock, nanoseconds};
use crate::htpasswd::{HtpasswdError, Users};
use crate::limits::{
    CREDENTIALS_BYTES_MAX, VERIFY_MARGIN, VERIFY_THREADS_MAX, VERIFY_WAIT_MAX, VERIFY_WAITING_MAX,
};
use crate::verified::{Tag, Verified};

/// Serves users of an htpasswd file only, and asks others for a password (`401`).
///
/// A password is verified on a thread of its own with the lowest priority, while the request waits; requests with verified
/// credentials don't wait. If [`VERIFY_WAITING_MAX`] passwords wait already, or for longer than [`VERIFY_WAIT_MAX`], the
/// request gets a `503`. An address with [`FAILURES_MAX`](crate::limits::FAILURES_MAX) wrong passwords may try another one each
/// [`FAILURE_EVERY`](crate::limits::FAILURE_EVERY), and gets a `429` in between without anything being verified. Both have
/// `Retry-After`.
///
/// Passwords are sent in clear unless the connection has TLS. Clones share everything.
#[derive(Clone)]
pub struct BasicAuth(Arc<Inner>);

struct Inner {
    users: Users,
    challenge: String,
    clock: Clock,
    verified: Verified,
    attempts: Arc<Attempts>,
}

/// Result of a password that was queued.
enum Verification {
    Correct,
    Wrong,
    /// Waited for too long.
    Late,
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth").field("users", &self.0.users).finish_non_exhaustive()
    }
}

impl BasicAuth {
    /// Reads an htpasswd file. `realm` is what browsers may show beside the question for a password.
    ///
    /// # Errors
    /// As [`Users::open`].
    pub fn open(path: impl AsRef<Path>, realm: &str) -> Result<Self, HtpasswdError> {
        Ok(Self::new(Users::open(path.as_ref())?, realm))
    }

    /// Serves these users. Quotes, backslashes and other than printable ASCII characters of `realm` become spaces.
    #[must_use]
    pub fn new(users: Users, realm: &str) -> Self {
        Self::with_clock(users, realm, Clock::default())
    }

    /// As [`new`](Self::new), with a clock for tests.
    #[must_use]
    pub fn with_clock(users: Users, realm: &str, clock: Clock) -> Self {
        let is_plain = |letter: char| (' '..='~').contains(&letter) && !matches!(letter, '"' | '\\');
        let realm: String = realm.chars().map(|letter| if is_plain(letter) { letter } else { ' ' }).collect();
        Self(Arc::new(Inner {
            users,
            challenge: format!("Basic realm=\"{realm}\", charset=\"UTF-8\""),
            verified: Verified::new(clock.clone()),
            attempts: Attempts::new(clock.clone()),
            clock,
        }))
    }

    /// Continues with the verified credentials of another one, for a reload, if it has the same users.
    #[must_use]
    pub fn continuing(self, present: &Self) -> Self {
        let is_same = self.0.users == present.0.users && self.0.challenge == present.0.challenge;
        if is_same { present.clone() } else { self }
    }

    /// Runs as a [guard](shearwater::Middleware::head).
    pub fn check(&self, request: &Request<'_>, response: &mut Response<'_>) -> ControlFlow<()> {
        let mut buffer = [0; CREDENTIALS_BYTES_MAX];
        let Some(credentials) = credentials(request, &mut buffer) else {
            self.0.ask(response);
            return ControlFlow::Break(());
        };
        let tag = self.0.verified.tag(credentials);
        if self.0.verified.has(tag) {
            return ControlFlow::Continue(());
        }
        match self.0.attempts.begin(tag, ClientKey::of(address(request, response))) {
            Ok(attempt) => self.verify(credentials.to_vec(), attempt, request, response),
            Err(wait) => ask_to_wait(response, 429, wait, "Too many wrong passwords from this address.\n"),
        }
        ControlFlow::Break(())
    }

    /// Has credentials verified elsewhere, and the request wait for it.
    fn verify(
        &self,
        credentials: Vec<u8>,
        attempt: Attempt,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) {
        let inner = Arc::clone(&self.0);
        // Dropped along with the request.
        let awaited = Arc::new(());
        let (wanted, since_ns) = (Arc::downgrade(&awaited), inner.clock.now_ns());
        let work = {
            let inner = Arc::clone(&self.0);
            move || match wanted.upgrade() {
                // Requests with the same credentials may have waited for the first of them.
                Some(_) if inner.verified.has_now(attempt.tag) => Verification::Correct,
                Some(_) if inner.clock.now_ns() - since_ns < nanoseconds(VERIFY_WAIT_MAX) => {
                    let is_correct = inner.verify(&credentials, attempt.tag);
                    // Also if its request has got a 503 by now.
                    attempt.end(is_correct);
                    if is_correct { Verification::Correct } else { Verification::Wrong }
                }
                _ => Verification::Late,
            }
        };
        let verification = pool().offload(work);
        response.defer(request, move |mut call| async move {
            // The threads have the lowest priority, so that they sometimes don't run at all.
            let mut late = pin!(call.sleep(VERIFY_WAIT_MAX + VERIFY_MARGIN));
            let mut verification = pin!(verification);
            let verification = poll_fn(|cx| match verification.as_mut().poll(cx) {
                Poll::Ready(verification) => Poll::Ready(verification),
                Poll::Pending => late.as_mut().poll(cx).map(|()| Ok(Verification::Late)),
            });
            let verification = verification.await;
            drop(awaited);
            match verification {
                Ok(Verification::Correct) => call.pass(),
                Ok(Verification::Wrong) => inner.ask(&mut call.response()),
                Ok(Verification::Late) | Err(_) => {
                    let text = "Too many passwords are being verified.\n";
                    ask_to_wait(&mut call.response(), 503, Duration::from_secs(1), text);
                }
            }
        });
    }
}

impl Inner {
    /// Asks for a password (RFC 7617 section 2).
    fn ask(&self, response: &mut Response<'_>) {
        response.status(401).field("WWW-Authenticate", &self.challenge).text("This page needs a password.\n");
    }

    /// Verifies credentials, which takes a good part of a second.
    fn verify(&self, credentials: &[u8], tag: Tag) -> bool {
        lower_thread_priority();
        let colon = credentials.iter().position(|&byte| byte == b':').unwrap_or(credentials.len());
        let (name, password) = credentials.split_at(colon);
        // The same for all passwords of a name: times that vary would show that a user is unknown.
        let any = self.verified.tag(name).bits();
        let is_correct = std::str::from_utf8(name)
            .is_ok_and(|name| self.users.verify(name, password.get(1..).unwrap_or_default(), any));
        if is_correct {
            self.verified.add(tag);
        }
        is_correct
    }
}

/// Returns the decoded credentials of a request, `user:password`, if it has any.
fn credentials<'b>(request: &Request<'_>, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let value = request.head().field(KnownField::Authorization)?;
    let (scheme, encoded) = value.split_at_checked(b"Basic ".len())?;
    let len = STANDARD.decode_slice(encoded.trim_ascii(), buffer).ok()?;
    let decoded = &buffer[..len];
    (scheme.eq_ignore_ascii_case(b"Basic ") && decoded.contains(&b':')).then_some(decoded)
}

/// Returns the threads of the process that verify passwords.
fn pool() -> &'static OffloadPool {
    static POOL: OnceLock<OffloadPool> = OnceLock::new();
    POOL.get_or_init(|| OffloadPool::new("passwords", VERIFY_THREADS_MAX, VERIFY_WAITING_MAX))
}
