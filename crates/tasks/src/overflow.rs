//! Reports stack overflows by label and size before the process aborts. Other faults go to the previous
//! handler.

#![expect(unsafe_code, reason = "installs signal handlers by system calls with pointers")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::alt_stack;
use crate::overflow_text::Text;

/// Signals for touching a guard page: Linux and the BSDs send the first, macOS the second.
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// A stack in use.
pub(crate) struct Guarded<'a> {
    /// Its lowest address: that of its guard page.
    pub(crate) limit: usize,
    /// Its size without the guard page.
    pub(crate) stack_bytes: usize,
    /// Label of its coroutine.
    pub(crate) label: &'a str,
}

/// The same for the handler, without a lifetime.
struct Watched {
    guard_page: Range<usize>,
    stack_bytes: usize,
    label: *const str,
}

thread_local! {
    /// The stack that this thread runs on; null for its own. Atomic because the handler interrupts its
    /// writer.
    static WATCHED: AtomicPtr<Watched> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Runs code on a stack whose overflow is reported.
pub(crate) fn watched<R>(guarded: &Guarded<'_>, run: impl FnOnce() -> R) -> R {
    /// Restores the previous stack, even on a panic.
    struct Restore(*mut Watched);
    impl Drop for Restore {
        fn drop(&mut self) {
            watch(self.0);
        }
    }
    let guard_page = guarded.limit..guarded.limit + page_bytes();
    let mut watched = Watched { guard_page, stack_bytes: guarded.stack_bytes, label: guarded.label };
    let _before = Restore(watch(&raw mut watched));
    run()
}

fn watch(watched: *mut Watched) -> *mut Watched {
    let before = WATCHED.with(|present| {
        let before = present.load(Ordering::Relaxed);
        present.store(watched, Ordering::Relaxed);
        before
    });
    compiler_fence(Ordering::SeqCst); // the handler runs on this thread: orders the writes before it
    before
}

/// The previous signal actions.
static PREVIOUS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Enables reports on this thread: installs the process's handler, once, and the thread's signal stack.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        let previous = [action(SIGNALS[0], None)?, action(SIGNALS[1], None)?];
        PREVIOUS.get_or_init(|| previous);
        let ours = our_action();
        for signal in SIGNALS {
            action(signal, Some(&ours))?;
        }
        *installed = true;
    }
    drop(installed);
    page_bytes();
    alt_stack::ensure()
}

fn our_action() -> libc::sigaction {
    let handler: HandlerOfThree = on_fault;
    // SAFETY: integers and nullable pointers, for which zero is a valid value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action
}

/// Sets the action of a signal, if given, and returns the previous one.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or an action, and `old` has space for one.
    if unsafe { libc::sigaction(signal, new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it; it was zeroed before, which is valid too.
    Ok(unsafe { old.assume_init() })
}

/// The handler. Async-signal-safe: no allocation, no lock.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let watched = WATCHED.with(|present| present.load(Ordering::Relaxed));
    // SAFETY: it is in a frame of `watched` on this thread, which this handler interrupts, so it is alive.
    if let Some(watched) = unsafe { watched.as_ref() } {
        // SAFETY: the system passes a fault's details to the handler.
        let info = unsafe { &*info };
        // SAFETY: a fault has an address; a sent signal has other numbers, which don't match a guard page.
        let address = unsafe { info.si_addr() }.addr();
        if watched.guard_page.contains(&address) {
            // SAFETY: the label is borrowed by the caller of `watched`, which this handler interrupts.
            let label = unsafe { &*watched.label };
            Text::overflow(label, watched.stack_bytes).print();
            // SAFETY: it has no preconditions.
            unsafe { libc::abort() };
        }
    }
    pass_on(signal, info, context);
}

/// Runs the previous action.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let which = SIGNALS.iter().position(|known| *known == signal);
    let previous = which.and_then(|which| Some(&PREVIOUS.get()?[which]));
    let Some(previous) = previous.filter(|previous| has_handler(previous)) else {
        return by_default(signal);
    };
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        handler_of_three(previous)(signal, info, context);
    } else {
        handler_of_one(previous)(signal);
    }
}

type HandlerOfThree = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type HandlerOfOne = extern "C" fn(c_int);

#[expect(clippy::disallowed_methods, reason = "no other conversion makes a function of an address")]
fn handler_of_three(action: &libc::sigaction) -> HandlerOfThree {
    let address = ptr::with_exposed_provenance::<()>(action.sa_sigaction);
    // SAFETY: it is the address of a handler with three arguments, according to its action's flags.
    unsafe { mem::transmute::<*const (), HandlerOfThree>(address) }
}

#[expect(clippy::disallowed_methods, reason = "no other conversion makes a function of an address")]
fn handler_of_one(action: &libc::sigaction) -> HandlerOfOne {
    let address = ptr::with_exposed_provenance::<()>(action.sa_sigaction);
    // SAFETY: it is the address of a handler with one argument, according to its action's flags.
    unsafe { mem::transmute::<*const (), HandlerOfOne>(address) }
}

fn has_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Applies the default action: a repeated fault ends the process, and a sent signal is sent again. (Ignoring
/// a fault would repeat it for ever.)
fn by_default(signal: c_int) {
    // SAFETY: as in `our_action`; zero is the default action.
    let default: libc::sigaction = unsafe { mem::zeroed() };
    if action(signal, Some(&default)).is_ok() {
        // SAFETY: it has no preconditions. The signal is blocked until the handler has returned.
        unsafe { libc::raise(signal) };
    }
}

/// Returns the size of a guard page. Read once, so that a handler makes no call.
fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: it has no preconditions and touches no memory.
    *PAGE_BYTES.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}
