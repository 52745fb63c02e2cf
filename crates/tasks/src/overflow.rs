//! Reports stack overflows by label and size before the process aborts. Other faults go to the previous
//! handler.

#![expect(unsafe_code, reason = "installs signal handlers by system calls with pointers")]

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::fmt::{self, Write};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};

use corosensei::stack::{DefaultStack, Stack};

use crate::limits::LABEL_BYTES_MAX;

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

thread_local! {
    /// The stack that this thread runs on; null for its own. Atomic because the handler interrupts its
    /// writer.
    static WATCHED: AtomicPtr<Guarded<'static>> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Runs code on a stack whose overflow is reported.
pub(crate) fn watched<R>(guarded: &Guarded<'_>, run: impl FnOnce() -> R) -> R {
    /// Restores the previous stack, even on a panic.
    struct RestoreWatched(*mut Guarded<'static>);
    impl Drop for RestoreWatched {
        fn drop(&mut self) {
            watch(self.0);
        }
    }
    // The handler uses it only until `RestoreWatched` is dropped.
    let _before = RestoreWatched(watch(ptr::from_ref(guarded).cast_mut().cast()));
    run()
}

fn watch(guarded: *mut Guarded<'static>) -> *mut Guarded<'static> {
    let before = WATCHED.with(|present| {
        let before = present.load(Ordering::Relaxed);
        present.store(guarded, Ordering::Relaxed);
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
    ensure_signal_stack()
}

fn our_action() -> libc::sigaction {
    let handler: FaultHandler = on_fault;
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
    let guarded = WATCHED.with(|present| present.load(Ordering::Relaxed));
    // SAFETY: the caller of `watched` on this thread, which this handler interrupts, borrows it and its label.
    if let Some(guarded) = unsafe { guarded.as_ref() } {
        // SAFETY: the system passes a fault's details to the handler.
        let info = unsafe { &*info };
        // SAFETY: a fault has an address; a sent signal has other numbers, which don't match a guard page.
        let address = unsafe { info.si_addr() }.addr();
        if (guarded.limit..guarded.limit + page_bytes()).contains(&address) {
            OverflowReport::new(guarded).print();
            // SAFETY: it has no preconditions.
            unsafe { libc::abort() };
        }
    }
    pass_on(signal, info, context);
}

type FaultHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type PlainFaultHandler = extern "C" fn(c_int);

/// Runs the previous action.
#[expect(clippy::disallowed_methods, reason = "no other conversion makes a function of an address")]
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let which = SIGNALS.iter().position(|known| *known == signal);
    let previous = which.and_then(|which| Some(&PREVIOUS.get()?[which]));
    let has_handler =
        |action: &&libc::sigaction| ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
    let Some(previous) = previous.filter(has_handler) else { return by_default(signal) };
    let address = ptr::with_exposed_provenance::<()>(previous.sa_sigaction);
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: it is the address of a handler with three arguments, according to its action's flags.
        let handler = unsafe { mem::transmute::<*const (), FaultHandler>(address) };
        handler(signal, info, context);
    } else {
        // SAFETY: it is the address of a handler with one argument, according to its action's flags.
        let handler = unsafe { mem::transmute::<*const (), PlainFaultHandler>(address) };
        handler(signal);
    }
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

/// Returns a page's size, in bytes. Read once, so that a handler makes no call.
pub(crate) fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: it has no preconditions and touches no memory.
    *PAGE_BYTES.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}

/// Enough for the handlers of this crate and of the standard library, on every system.
const SIGNAL_STACK_BYTES: usize = 64 * 1024;

thread_local! {
    /// This thread's signal stack, if it had none. Released when the thread ends.
    static SIGNAL_STACK: RefCell<Option<SignalStack>> = const { RefCell::new(None) };
}

/// Keeps the memory of a signal stack mapped.
struct SignalStack(#[expect(dead_code, reason = "only its destructor is used")] DefaultStack);

/// Gives this thread a signal stack unless it has one. The standard library gives one to its threads, unless
/// a handler for faults was installed when the process began.
fn ensure_signal_stack() -> io::Result<()> {
    let present = exchange_stack(None)?;
    if present.ss_flags & libc::SS_DISABLE == 0 {
        return Ok(());
    }
    let stack = DefaultStack::new(SIGNAL_STACK_BYTES)?;
    let lowest = stack.base().get() - SIGNAL_STACK_BYTES;
    let new = libc::stack_t {
        ss_sp: ptr::with_exposed_provenance_mut(lowest),
        ss_flags: 0,
        ss_size: SIGNAL_STACK_BYTES,
    };
    exchange_stack(Some(&new))?;
    SIGNAL_STACK.with(|own| own.replace(Some(SignalStack(stack))));
    Ok(())
}

/// Sets the signal stack, if given, and returns the previous one.
fn exchange_stack(new: Option<&libc::stack_t>) -> io::Result<libc::stack_t> {
    let mut old = MaybeUninit::<libc::stack_t>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or describes memory that stays mapped while it is set, and `old` has space for a
    // description.
    if unsafe { libc::sigaltstack(new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it; it was zeroed before, which is valid too.
    Ok(unsafe { old.assume_init() })
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let none =
            libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: SIGNAL_STACK_BYTES };
        // On failure the system keeps the address of unmapped memory, for a thread that ends.
        let _disabled = exchange_stack(Some(&none));
    }
}

/// Enough for a label, the largest size and the text around them.
const REPORT_BYTES_MAX: usize = LABEL_BYTES_MAX + 128;

/// The report of an overflow, formatted without allocating: a signal handler writes it.
struct OverflowReport {
    bytes: [u8; REPORT_BYTES_MAX],
    len: usize,
}

impl OverflowReport {
    fn new(guarded: &Guarded<'_>) -> Self {
        let mut report = Self { bytes: [0; REPORT_BYTES_MAX], len: 0 };
        let label = guarded.label.as_bytes();
        report.push(b"shearwater: coroutine ");
        report.push(&label[..label.len().min(LABEL_BYTES_MAX)]);
        let size = guarded.stack_bytes;
        let _fits = writeln!(
            report,
            " has overflowed its stack of {size} bytes; it needs a larger one, or less recursion"
        );
        report
    }

    /// Writes it to standard error by one call. Errors are ignored.
    fn print(&self) {
        // SAFETY: the buffer has `len` bytes.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }

    fn push(&mut self, bytes: &[u8]) {
        for (to, from) in self.bytes[self.len..].iter_mut().zip(bytes) {
            *to = *from;
            self.len += 1;
        }
    }
}

impl Write for OverflowReport {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_label_and_size() {
        let text = OverflowReport::new(&Guarded { limit: 0, stack_bytes: 65_536, label: "/reports/{year}" });
        let expected = "shearwater: coroutine /reports/{year} has overflowed its stack of 65536 bytes; it needs a larger one, or less recursion\n";
        assert_eq!(&text.bytes[..text.len], expected.as_bytes());
    }

    #[test]
    fn has_room_for_any_size_and_label() {
        for number in [0, 9, 10, usize::MAX] {
            let label = "x".repeat(LABEL_BYTES_MAX + 1);
            let text = OverflowReport::new(&Guarded { limit: 0, stack_bytes: number, label: &label });
            let line = std::str::from_utf8(&text.bytes[..text.len]).unwrap();
            assert!(line.contains(&format!(" {number} bytes")) && line.ends_with('\n'), "{line}");
            assert_eq!(line.matches('x').count(), LABEL_BYTES_MAX, "the rest is left out");
        }
    }
}
