//! A request in the hands of a coroutine: straight-line code that waits in the middle.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use shearwater_engine::tasks::{Suspend, yield_now};
use shearwater_engine::{Call, Gone};

use crate::offload::{self, Offloaded};

/// A [`Call`] for straight-line code: what waits looks like what doesn't, and the worker goes on with others meanwhile.
///
/// A coroutine runs on a stack of its own. While it waits it may be dropped, because its client is gone for example: its stack is unwound then as by
/// a panic, so that what lies on it is dropped.
///
/// ```
/// use shearwater::{App, Line};
/// use std::time::Duration;
///
/// let mut app = App::new();
/// app.get_coroutine("/slow", |line: &mut Line| {
///     line.sleep(Duration::from_millis(100));
///     line.response().text("slow\n");
/// });
/// ```
pub struct Line<'a> {
    call: Call,
    suspend: &'a Suspend<'a>,
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<'a> Line<'a> {
    pub(crate) fn new(call: Call, suspend: &'a Suspend<'a>) -> Self {
        Self { call, suspend }
    }

    pub(crate) fn into_call(self) -> Call {
        self.call
    }

    /// Waits for a future.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.suspend.wait(future)
    }

    /// The next piece of the body: see [`Call::read`].
    pub fn read(&mut self) -> Option<&[u8]> {
        let suspend = self.suspend;
        suspend.wait(self.call.read())
    }

    /// The whole body, if it has at most `bytes_max` bytes: see [`Call::read_to_end`].
    ///
    /// # Errors
    /// What was read where it has more.
    pub fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        self.suspend.wait(self.call.read_to_end(bytes_max))
    }

    /// Sends a piece of the answer's body: see [`Call::send`].
    ///
    /// # Errors
    /// [`Gone`], where the client takes nothing more.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.suspend.wait(self.call.send(bytes))
    }

    /// Waits for a time.
    pub fn sleep(&self, duration: Duration) {
        self.suspend.wait(self.call.sleep(duration));
    }

    /// Lets the others have their turn.
    pub fn yield_now(&self) {
        self.suspend.wait(yield_now());
    }

    /// Has something done on another thread, which may block, and waits for it: see [`offload`](offload::offload).
    ///
    /// # Errors
    /// [`Offloaded`] says why it wasn't done.
    pub fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Offloaded> {
        self.suspend.wait(offload::offload(work))
    }
}

impl Deref for Line<'_> {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl DerefMut for Line<'_> {
    fn deref_mut(&mut self) -> &mut Call {
        &mut self.call
    }
}
