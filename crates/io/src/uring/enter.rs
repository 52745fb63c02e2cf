//! The system call that submits entries and waits for completions.
//!
//! The ring's descriptor is registered with its thread, which saves the kernel a look-up and a reference count in
//! each call. An idle worker's wait doesn't count as time spent waiting for a disk (`iowait`).

#![expect(unsafe_code, reason = "the library has no call with these flags")]

use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

use io_uring::types::Timespec;

/// Flags of `io_uring_enter`.
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 1 << 3;
const REGISTERED_RING: u32 = 1 << 4;
const NO_IOWAIT: u32 = 1 << 7;

/// Operations of `io_uring_register`.
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;
/// Lets the kernel choose the place of a registered descriptor.
const ANY_PLACE: u32 = u32::MAX;

/// The kernel's `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingUpdate {
    place: u32,
    reserved: u32,
    fd: u64,
}

/// The kernel's `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArgument {
    sigmask: u64,
    sigmask_len: u32,
    padding: u32,
    timeout: u64,
}

/// A ring as its thread enters it. Dropped before the ring is closed, on that thread.
#[derive(Debug)]
pub(super) struct Enter {
    ring: RawFd,
    /// Place among the thread's registered rings; `None` if the kernel has no place left.
    place: Option<u32>,
    /// Flags of each call.
    flags: u32,
    /// On another thread the place would be another ring's.
    stays_on_its_thread: PhantomData<*mut ()>,
}

impl Enter {
    /// Registers the descriptor of a ring. `no_iowait` states that the kernel knows that flag.
    pub(super) fn new(ring: RawFd, no_iowait: bool) -> Self {
        let place = register(ring);
        let flags = if place.is_some() { REGISTERED_RING } else { 0 };
        let flags = flags | if no_iowait { NO_IOWAIT } else { 0 };
        Self { ring, place, flags, stays_on_its_thread: PhantomData }
    }

    /// Submits `entries` entries, then returns at once. `runs_work` makes the kernel run the work that is due.
    pub(super) fn submit(&self, entries: usize, runs_work: bool) -> io::Result<usize> {
        self.call(entries, 0, if runs_work { GETEVENTS } else { 0 }, None)
    }

    /// Submits `entries` entries and waits for a completion, at most for `timeout`.
    pub(super) fn submit_and_wait(&self, entries: usize, timeout: Option<Duration>) -> io::Result<usize> {
        let Some(timeout) = timeout else { return self.call(entries, 1, GETEVENTS, None) };
        let timespec = Timespec::from(timeout);
        let timeout = (&raw const timespec) as u64;
        let argument = WaitArgument { sigmask: 0, sigmask_len: 0, padding: 0, timeout };
        self.call(entries, 1, GETEVENTS | EXT_ARG, Some(&argument))
    }

    fn call(
        &self,
        entries: usize,
        completions: u32,
        flags: u32,
        argument: Option<&WaitArgument>,
    ) -> io::Result<usize> {
        let ring = self.place.map_or(self.ring, u32::cast_signed);
        let len = argument.map_or(0, |_| size_of::<WaitArgument>());
        let argument = argument.map_or(ptr::null(), ptr::from_ref);
        let entries = entries as u32; // at most the size of the queue
        let flags = self.flags | flags;
        // SAFETY: the kernel reads the argument, and the time to which it points, during the call. What the
        // entries point to is up to those who queue them (`Ring::queue`).
        let done = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, ring, entries, completions, flags, argument, len)
        };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for Enter {
    /// A registered ring would stay open until the thread ends.
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut update = RingUpdate { place, reserved: 0, fd: 0 };
            change(self.ring, UNREGISTER_RING_FDS, &mut update);
        }
    }
}

/// Registers a ring's descriptor with this thread; returns its place.
fn register(ring: RawFd) -> Option<u32> {
    let fd = u64::try_from(ring).ok()?;
    let mut update = RingUpdate { place: ANY_PLACE, reserved: 0, fd };
    change(ring, REGISTER_RING_FDS, &mut update).then_some(update.place)
}

fn change(ring: RawFd, operation: u32, update: &mut RingUpdate) -> bool {
    let update = ptr::from_mut(update);
    // SAFETY: the kernel reads and writes the one update during the call.
    let changed = unsafe { libc::syscall(libc::SYS_io_uring_register, ring, operation, update, 1_u32) };
    changed == 1
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use io_uring::{IoUring, opcode};
    use rustix::io::Errno;

    use super::*;

    /// Places that a thread has for registered rings (the kernel's `IO_RINGFD_REG_MAX`).
    const PLACES: usize = 16;

    /// Rings beyond a thread's places work too, and a dropped one frees its place.
    #[test]
    fn enters_rings_with_and_without_a_place() {
        let mut kept = Vec::new();
        for number in 0..PLACES + 2 {
            let Ok(mut ring) = IoUring::new(4) else {
                println!("skipped: there is no io_uring here");
                return;
            };
            let enter = Enter::new(ring.as_raw_fd(), ring.params().is_feature_no_iowait());
            // Threads of tests are fresh, but the kernel may be too old to have places.
            assert!(enter.place.is_none() || number < PLACES);
            let entry = opcode::Nop::new().build().user_data(7);
            // SAFETY: it points to nothing.
            unsafe { ring.submission().push(&entry) }.expect("there is room");
            assert_eq!(enter.submit(1, false).expect("it is submitted"), 1);
            assert_eq!(enter.submit_and_wait(0, None).expect("it has completed"), 0);
            assert_eq!(ring.completion().map(|entry| entry.user_data()).collect::<Vec<_>>(), [7]);
            let late = enter.submit_and_wait(0, Some(Duration::from_millis(1)));
            assert_eq!(Errno::from_io_error(&late.expect_err("nothing comes")), Some(Errno::TIME));
            kept.push((enter, ring));
        }
        if kept[0].0.place.is_some() {
            kept.remove(0);
            let (_, ring) = kept.pop().expect("one without a place");
            assert!(Enter::new(ring.as_raw_fd(), false).place.is_some());
        }
    }
}
