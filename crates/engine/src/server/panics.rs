//! Panics of handlers: caught, located, and kept from flooding standard error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use crate::limits::{REPORT_EVERY_MS, REPORT_KINDS_MAX};

/// A caught panic.
#[derive(Debug)]
pub(crate) struct Panic {
    pub(crate) message: String,
    /// File, line and column; `None` if no hook was called (`resume_unwind`).
    pub(crate) place: Option<String>,
    /// Method and path of the request that was being handled.
    pub(crate) request: Option<String>,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

thread_local! {
    /// Location of this thread's last panic.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
    /// Clock of the worker that runs on this thread.
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
    /// Locations whose panics this thread has printed, each with the time until which it is suppressed;
    /// `None` on threads that aren't workers.
    static PRINTED: RefCell<Option<Vec<(String, u64)>>> = const { RefCell::new(None) };
}

/// Installs a panic hook once, before the process's own. It records locations; on workers it limits the
/// standard library's output to once a second per location. A hook that the program has installed before is
/// called for every panic.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        // No hook is set now, so this is the standard library's.
        let of_std = panic::take_hook();
        let prints = is_same(&*previous, &*of_std);
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string);
            let is_quiet = prints && is_quiet(place.as_deref().unwrap_or_default());
            // The variables of an exiting thread may already be destroyed.
            let _ = LAST.try_with(|last| last.set(place));
            if !is_quiet {
                previous(info);
            }
        }));
    });
}

type Hook<'a> = dyn Fn(&PanicHookInfo<'_>) + Send + Sync + 'a;

/// Returns true if two hooks are the same function. Hooks without state have the same address: their vtables
/// differ.
fn is_same(one: &Hook<'_>, other: &Hook<'_>) -> bool {
    std::ptr::eq(one, other)
}

/// Marks this thread as a worker's.
pub(crate) fn enter_worker() {
    install_hook();
    PRINTED.set(Some(Vec::new()));
}

/// Updates the worker's clock, once a turn.
#[inline]
pub(crate) fn set_now_ms(now_ms: u64) {
    NOW_MS.set(now_ms);
}

/// Returns true if this thread has printed a panic of this location within the last second, or too many
/// others. Records the location otherwise.
fn is_quiet(place: &str) -> bool {
    let look = |printed: &RefCell<Option<Vec<(String, u64)>>>| {
        let mut printed = printed.borrow_mut();
        let Some(places) = &mut *printed else { return false };
        let now_ms = NOW_MS.get();
        places.retain(|(_, until_ms)| *until_ms > now_ms);
        let is_known = places.iter().any(|(known, _)| known == place);
        let is_quiet = is_known || places.len() >= REPORT_KINDS_MAX;
        if !is_quiet {
            places.push((place.to_owned(), now_ms.saturating_add(REPORT_EVERY_MS)));
        }
        is_quiet
    };
    PRINTED.try_with(look).unwrap_or(false)
}

/// Calls a handler and catches its panic.
///
/// A panic may leave the handler's own state inconsistent, and the response, which is discarded.
pub(crate) fn catch<T>(handler: impl FnOnce() -> T) -> Result<T, Box<Panic>> {
    panic::catch_unwind(AssertUnwindSafe(handler)).map_err(caught)
}

#[cold]
fn caught(payload: Box<dyn Any + Send>) -> Box<Panic> {
    let panic = Panic { message: message(payload.as_ref()), place: LAST.take(), request: None };
    // The payload may panic again when it is dropped.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Box::new(panic)
}

/// Returns the message of a panic.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
