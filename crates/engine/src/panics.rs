//! Panicking handlers: caught, counted, and shown to the operator once per worker.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Panics that this thread may still print; `None` on threads that aren't workers.
    static PRINTS_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

static HOOK: Once = Once::new();

/// Makes this thread print its first panic only: a handler that panics at every request must not flood the log. Puts
/// a hook before the process's panic hook, once; other threads' panics print as before.
pub(crate) fn print_first_only() {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let may_print = PRINTS_LEFT.get().is_none_or(|left| left > 0);
            PRINTS_LEFT.set(PRINTS_LEFT.get().map(|left| left.saturating_sub(1)));
            if may_print {
                previous(info);
            }
        }));
    });
    PRINTS_LEFT.set(Some(1));
}

/// Calls a handler. A panic comes back as its message.
///
/// What the handler can leave half-done is its own state and the response, which is thrown away.
pub(crate) fn catch<T>(handler: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(handler)).map_err(|payload| {
        let message = message(payload.as_ref());
        // What was thrown may throw again when it is dropped.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
        message
    })
}

/// What a panic said.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
