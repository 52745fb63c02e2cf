//! The signal stack of a thread for stack overflows, whose own stack may be full.

#![expect(unsafe_code, reason = "sets the signal stack by a call that takes pointers")]

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use corosensei::stack::{DefaultStack, Stack};

/// Enough for the handlers of this crate and of the standard library, on every system.
const ALT_STACK_BYTES: usize = 64 * 1024;

thread_local! {
    /// This thread's stack, if it had none. Released when the thread ends.
    static OWN: RefCell<Option<AltStack>> = const { RefCell::new(None) };
}

struct AltStack {
    /// Keeps the memory mapped.
    _stack: DefaultStack,
}

/// Gives this thread a signal stack unless it has one. The standard library gives one to its threads, unless
/// a handler for faults was installed when the process began.
pub(crate) fn ensure() -> io::Result<()> {
    let present = exchange(None)?;
    if present.ss_flags & libc::SS_DISABLE == 0 {
        return Ok(());
    }
    let stack = DefaultStack::new(ALT_STACK_BYTES)?;
    let lowest = stack.base().get() - ALT_STACK_BYTES;
    let new = libc::stack_t {
        ss_sp: ptr::with_exposed_provenance_mut(lowest),
        ss_flags: 0,
        ss_size: ALT_STACK_BYTES,
    };
    exchange(Some(&new))?;
    OWN.with(|own| own.replace(Some(AltStack { _stack: stack })));
    Ok(())
}

/// Sets the signal stack, if given, and returns the previous one.
fn exchange(new: Option<&libc::stack_t>) -> io::Result<libc::stack_t> {
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

impl Drop for AltStack {
    fn drop(&mut self) {
        let none =
            libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: ALT_STACK_BYTES };
        // On failure the system keeps the address of unmapped memory, for a thread that ends.
        let _disabled = exchange(Some(&none));
    }
}
