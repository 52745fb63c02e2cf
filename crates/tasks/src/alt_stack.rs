//! The stack on which a thread handles faults: its own may be the one that has no room left.

#![expect(unsafe_code, reason = "the system is told by a call that takes pointers")]

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use corosensei::stack::{DefaultStack, Stack};

/// Enough for the handlers of this crate and of the standard library, on every system; not a bound that anybody meets.
const ALT_STACK_BYTES: usize = 64 * 1024;

thread_local! {
    /// Where this thread had none. Given back at the thread's end.
    static OWN: RefCell<Option<AltStack>> = const { RefCell::new(None) };
}

struct AltStack {
    /// Kept mapped.
    _stack: DefaultStack,
}

/// Sees to it that this thread has one. The standard library gives one to the threads that it makes, unless somebody else handled faults when the
/// process began.
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

/// Tells the system of another stack, where one is given; gives the one before.
fn exchange(new: Option<&libc::stack_t>) -> io::Result<libc::stack_t> {
    let mut old = MaybeUninit::<libc::stack_t>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or describes memory that stays mapped while the system knows it, and `old` has room for such a description.
    if unsafe { libc::sigaltstack(new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it; before, it was zero, which is a value of it too.
    Ok(unsafe { old.assume_init() })
}

impl Drop for AltStack {
    fn drop(&mut self) {
        let none =
            libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: ALT_STACK_BYTES };
        // Nothing can be done where the system refuses; it would keep an address at which nothing is, for a thread that ends.
        let _disabled = exchange(Some(&none));
    }
}
