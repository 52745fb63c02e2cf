//! Overflowing stacks: told by label and size, before the process aborts. Any other fault goes to whoever handled it before.

#![expect(unsafe_code, reason = "signal handlers are installed by system calls and are handed pointers")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::alt_stack;
use crate::overflow_text::Text;

/// What systems send who touches a guard page: Linux and the BSDs the first, macOS the second.
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The stack on which code is run.
pub(crate) struct Guarded<'a> {
    /// Its lowest address: that of its guard page.
    pub(crate) limit: usize,
    /// Its size without the guard page.
    pub(crate) stack_bytes: usize,
    /// Whose it is.
    pub(crate) label: &'a str,
}

/// The same for the handler, which can't know for how long it is there.
struct Watched {
    guard_page: Range<usize>,
    stack_bytes: usize,
    label: *const str,
}

thread_local! {
    /// The stack on which this thread runs; null: its own. Atomic since the handler interrupts who writes it.
    static WATCHED: AtomicPtr<Watched> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Runs something on a stack whose overflow is told.
pub(crate) fn watched<R>(guarded: &Guarded<'_>, run: impl FnOnce() -> R) -> R {
    /// Puts back what was watched before, also where something panics.
    struct Before(*mut Watched);
    impl Drop for Before {
        fn drop(&mut self) {
            watch(self.0);
        }
    }
    let guard_page = guarded.limit..guarded.limit + page_bytes();
    let mut watched = Watched { guard_page, stack_bytes: guarded.stack_bytes, label: guarded.label };
    let _before = Before(watch(&raw mut watched));
    run()
}

fn watch(watched: *mut Watched) -> *mut Watched {
    let before = WATCHED.with(|present| {
        let before = present.load(Ordering::Relaxed);
        present.store(watched, Ordering::Relaxed);
        before
    });
    compiler_fence(Ordering::SeqCst); // the handler runs on this thread: it sees what stands before it in the code
    before
}

/// What was done about the signals before.
static PREVIOUS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Sees to it that overflows on this thread are told: the process gets its handler, once, and the thread a stack to run it on.
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
    // SAFETY: integers and pointers that may be null, for which zero is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action
}

/// Sets what is done about a signal, where something is given; gives what was done before.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or an action, and `old` has room for one.
    if unsafe { libc::sigaction(signal, new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it; before, it was zero, which is a value of it too.
    Ok(unsafe { old.assume_init() })
}

/// The handler. It does only what a signal's handler may: no allocation, no lock.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let watched = WATCHED.with(|present| present.load(Ordering::Relaxed));
    // SAFETY: it lies in a frame of `watched`, on this thread, which this handler interrupts: it is there.
    if let Some(watched) = unsafe { watched.as_ref() } {
        // SAFETY: the system hands the handler of a fault what it knows of it.
        let info = unsafe { &*info };
        // SAFETY: of a fault it knows the address; of a signal that somebody sent it knows other numbers, which are none of a guard page.
        let address = unsafe { info.si_addr() }.addr();
        if watched.guard_page.contains(&address) {
            // SAFETY: the label is borrowed by the caller of `watched`, which this handler interrupts.
            let label = unsafe { &*watched.label };
            Text::overflow(label, watched.stack_bytes).print();
            // SAFETY: it can be called anywhere.
            unsafe { libc::abort() };
        }
    }
    pass_on(signal, info, context);
}

/// Does what would have been done without this handler.
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
    // SAFETY: it is the address of a handler, of three arguments: its action says so.
    unsafe { mem::transmute::<*const (), HandlerOfThree>(address) }
}

#[expect(clippy::disallowed_methods, reason = "no other conversion makes a function of an address")]
fn handler_of_one(action: &libc::sigaction) -> HandlerOfOne {
    let address = ptr::with_exposed_provenance::<()>(action.sa_sigaction);
    // SAFETY: it is the address of a handler, of one argument: its action doesn't say otherwise.
    unsafe { mem::transmute::<*const (), HandlerOfOne>(address) }
}

fn has_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Ends the process as it would have ended: where the fault is repeated the system does it, and a signal that somebody sent is sent again.
/// (To ignore a fault would be to repeat it for ever.)
fn by_default(signal: c_int) {
    // SAFETY: as in `our_action`; zero is the default action.
    let default: libc::sigaction = unsafe { mem::zeroed() };
    if action(signal, Some(&default)).is_ok() {
        // SAFETY: it can be called anywhere. The signal waits until the handler has returned.
        unsafe { libc::raise(signal) };
    }
}

/// The size of a guard page. Asked once: a handler reads what was answered.
fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: it can be called anywhere and touches no memory.
    *PAGE_BYTES.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}
