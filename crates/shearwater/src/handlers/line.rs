//! A call whose waiting methods are plain functions, for coroutines.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use shearwater_engine::Gone;
use shearwater_engine::tasks::{Suspend, yield_now};

use super::offload::{Offloaded, offload};
use crate::call::{Body, Call, Discarded, Reading, Sent};
use crate::reply::Head;

/// A [`Call`] whose waiting methods are plain functions, for [coroutines](crate::line).
///
/// The worker serves other requests while the coroutine waits.
///
/// A coroutine runs on its own stack. It may be dropped while it waits, for example because its client has
/// disconnected: its stack is unwound then, as by a panic, which drops its values.
///
/// ```
/// use shearwater::{App, Line, get, line};
/// use std::time::Duration;
///
/// fn slow(line: &mut Line) -> &'static str {
///     line.sleep(Duration::from_millis(100));
///     "slow\n"
/// }
///
/// let app = App::new().route("/slow", get(line(slow)));
/// ```
pub struct Line<'a, S = (), B = Discarded> {
    call: LineCall<S, B>,
    suspend: &'a Suspend<'a>,
}

/// The call of a coroutine, from before it has a stack.
pub(super) struct LineCall<S, B> {
    pub(super) call: Call<S, B>,
    /// Set before the coroutine is dropped because it has taken too long.
    pub(super) is_late: Option<Rc<Cell<bool>>>,
}

impl<S, B> Drop for LineCall<S, B> {
    /// Responds for a coroutine that is dropped because of its timeout.
    fn drop(&mut self) {
        if self.is_late.as_ref().is_some_and(|is_late| is_late.get()) {
            self.call.time_out();
        }
    }
}

impl<S, B> fmt::Debug for Line<'_, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("call", &self.call.call).finish_non_exhaustive()
    }
}

impl<'a, S, B> Line<'a, S, B> {
    pub(super) fn new(call: LineCall<S, B>, suspend: &'a Suspend<'a>) -> Self {
        Self { call, suspend }
    }

    /// Waits for a future and returns its output.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.suspend.wait(future)
    }

    /// Waits for a duration.
    pub fn sleep(&self, duration: Duration) {
        self.wait(shearwater_engine::Call::sleep(self, duration));
    }

    /// Lets other tasks of the worker run.
    pub fn yield_now(&self) {
        self.wait(yield_now());
    }

    /// Runs blocking work on another thread, and waits for its result. See [`offload`](crate::offload()).
    ///
    /// # Errors
    /// [`Offloaded`] if the queue is full or the work panicked.
    pub fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Offloaded> {
        self.wait(offload(work))
    }

    /// Sends the head now, and returns the body to stream. See [`Call::begin`].
    pub fn begin(&mut self, head: Head) -> LineBody<'_, S, B> {
        let suspend = self.suspend;
        LineBody { body: Call::begin(self, head), suspend }
    }
}

impl<S> Line<'_, S, Reading> {
    /// Waits for the next piece of the body. See [`Call::read`].
    pub fn read(&mut self) -> Option<&[u8]> {
        let suspend = self.suspend;
        suspend.wait(Call::read(self))
    }

    /// Waits for the whole body, if it has at most `bytes_max` bytes. See [`Call::read_to_end`].
    ///
    /// # Errors
    /// The bytes read so far, if the body is longer.
    pub fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        let suspend = self.suspend;
        suspend.wait(Call::read_to_end(self, bytes_max))
    }
}

impl<S, B> Deref for Line<'_, S, B> {
    type Target = Call<S, B>;

    fn deref(&self) -> &Call<S, B> {
        &self.call.call
    }
}

impl<S, B> DerefMut for Line<'_, S, B> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.call.call
    }
}

/// The body of a response that a coroutine streams. See [`Body`].
#[derive(Debug)]
pub struct LineBody<'a, S = (), B = Discarded> {
    body: Body<'a, S, B>,
    suspend: &'a Suspend<'a>,
}

impl<S, B> LineBody<'_, S, B> {
    /// Sends a piece, and waits while the client is behind. See [`Body::send`].
    ///
    /// # Errors
    /// [`Gone`] if the client has disconnected.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Gone> {
        self.suspend.wait(self.body.send(bytes))
    }

    /// Waits for a future and returns its output.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.suspend.wait(future)
    }

    /// Waits for a duration.
    pub fn sleep(&self, duration: Duration) {
        self.wait(self.body.sleep(duration));
    }

    /// Completes the body. See [`Body::end`].
    #[must_use = "return it from the handler"]
    pub fn end(self) -> Sent {
        self.body.end()
    }
}

impl<S> LineBody<'_, S, Reading> {
    /// Waits for the next piece of the request's body. See [`Call::read`].
    pub fn read(&mut self) -> Option<&[u8]> {
        self.suspend.wait(self.body.read())
    }
}

impl<'a, S, B> Deref for LineBody<'a, S, B> {
    type Target = Body<'a, S, B>;

    fn deref(&self) -> &Self::Target {
        &self.body
    }
}

impl<S, B> DerefMut for LineBody<'_, S, B> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.body
    }
}
