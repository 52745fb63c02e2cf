//! A call as a coroutine sees it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use shearwater_engine::tasks::{Suspend, yield_now};
use shearwater_engine::{Call, Gone};

use crate::offload::{self, Offloaded};

/// A [`Call`] whose waiting methods are plain functions, for [coroutines](crate::App::route_coroutine).
///
/// The worker serves other requests while the coroutine waits.
///
/// A coroutine runs on its own stack. It may be dropped while it waits, for example because its client has
/// disconnected: its stack is unwound then, as by a panic, which drops its values.
///
/// ```
/// use shearwater::{App, CoroutineCall};
/// use std::time::Duration;
///
/// let mut app = App::new();
/// app.get_coroutine("/slow", |line: &mut CoroutineCall| {
///     line.sleep(Duration::from_millis(100));
///     line.response().text("slow\n");
/// });
/// ```
pub struct CoroutineCall<'a> {
    call: Call,
    suspend: &'a Suspend<'a>,
}

impl fmt::Debug for CoroutineCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoroutineCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<'a> CoroutineCall<'a> {
    pub(crate) fn new(call: Call, suspend: &'a Suspend<'a>) -> Self {
        Self { call, suspend }
    }

    pub(crate) fn into_call(self) -> Call {
        self.call
    }

    /// Waits for a future and returns its output.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.suspend.wait(future)
    }

    /// Waits for the next piece of the body. See [`Call::read`].
    pub fn read(&mut self) -> Option<&[u8]> {
        let suspend = self.suspend;
        suspend.wait(self.call.read())
    }

    /// Waits for the whole body, if it has at most `bytes_max` bytes. See [`Call::read_to_end`].
    ///
    /// # Errors
    /// The bytes read so far, if the body is longer.
    pub fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        self.suspend.wait(self.call.read_to_end(bytes_max))
    }

    /// Sends a piece of the response body, and waits while the client is behind. See [`Call::send`].
    ///
    /// # Errors
    /// [`Gone`] if the client has disconnected.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.suspend.wait(self.call.send(bytes))
    }

    /// Waits for a duration.
    pub fn sleep(&self, duration: Duration) {
        self.suspend.wait(self.call.sleep(duration));
    }

    /// Lets other tasks of the worker run.
    pub fn yield_now(&self) {
        self.suspend.wait(yield_now());
    }

    /// Runs blocking work on another thread, and waits for its result. See [`offload`](offload::offload).
    ///
    /// # Errors
    /// [`Offloaded`] if the queue is full or the work panicked.
    pub fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Offloaded> {
        self.suspend.wait(offload::offload(work))
    }
}

impl Deref for CoroutineCall<'_> {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl DerefMut for CoroutineCall<'_> {
    fn deref_mut(&mut self) -> &mut Call {
        &mut self.call
    }
}
