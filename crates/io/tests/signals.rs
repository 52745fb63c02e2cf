//! Signals to this process: caught while a listener exists, then restored. A separate binary.

#![expect(unsafe_code, reason = "handlers of a program are installed by a system call")]

use std::ffi::c_int;
use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use shearwater_io::limits::SIGNALS_QUEUED_MAX;
use shearwater_io::signals::{Signal, Signals, Watch, watch};

const CAUGHT: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::User1];
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Calls of the program's own handler.
static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn own(_: c_int) {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

fn set(signal: c_int, handler: usize) {
    // SAFETY: integers and nullable pointers, for which zero is a valid value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    // SAFETY: it is an action whose handler is a function of one argument, or a constant.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

fn current(signal: c_int) -> libc::sigaction {
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: there is space for an action.
    assert_eq!(unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) }, 0);
    action
}

fn handler_of(signal: c_int) -> usize {
    current(signal).sa_sigaction
}

fn flags_of(signal: c_int) -> c_int {
    current(signal).sa_flags
}

fn raise(signal: c_int) {
    // SAFETY: it has no preconditions. The handler has run when it returns.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

fn listening(signals: &Signals) -> Receiver<Signal> {
    let (sender, heard) = sync_channel(2 * SIGNALS_QUEUED_MAX);
    signals.act(move |signal| sender.send(signal).expect("the test listens"));
    heard
}

fn calls() -> usize {
    CALLS.swap(0, Ordering::Relaxed)
}

/// Blocks or unblocks a signal in this thread, and in those that it starts.
fn mask(how: c_int, signal: c_int) {
    // SAFETY: integers, for which zero is a valid value: the empty set.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: the set is initialised; no previous one is asked for.
    assert_eq!(unsafe { libc::pthread_sigmask(how, &raw const set, ptr::null_mut()) }, 0);
}

/// Starts this test alone in a process whose threads all block `SIGTERM`.
#[test]
fn catches_signals_that_the_parent_blocks() {
    const CHILD: &str = "SHEARWATER_TEST_BLOCKED";
    if std::env::var_os(CHILD).is_none() {
        mask(libc::SIG_BLOCK, libc::SIGTERM);
        let mut command = std::process::Command::new(std::env::current_exe().expect("a test"));
        command.args(["--exact", "catches_signals_that_the_parent_blocks", "--nocapture"]).env(CHILD, "1");
        let status = command.status().expect("it starts");
        mask(libc::SIG_UNBLOCK, libc::SIGTERM);
        assert!(status.success(), "{status}");
        return;
    }
    let signals = Signals::catch(&[Signal::Terminate]).expect("the system permits it");
    let heard = listening(&signals);
    // SAFETY: it has no preconditions.
    let own = unsafe { libc::getpid() };
    // SAFETY: it has no preconditions.
    assert_eq!(unsafe { libc::kill(own, libc::SIGTERM) }, 0);
    assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Terminate));
}

/// Watches a source that can always be read, with an endless pause after the first time.
fn watch_paused() -> (Watch, Receiver<()>, UnixStream) {
    let (mut here, there) = UnixStream::pair().expect("descriptors");
    here.write_all(b"x").expect("sent");
    let (sender, calls) = sync_channel(2);
    let ready = move || {
        sender.send(()).expect("the test listens");
        Some(Duration::from_secs(600))
    };
    (watch(there, ready).expect("the only one"), calls, here)
}

fn assert_a_source_is_watched() {
    let (mut here, there) = UnixStream::pair().expect("descriptors");
    let mut reader = there.try_clone().expect("descriptors");
    let (sender, bytes) = sync_channel(3);
    let ready = move || {
        let mut byte = [0];
        reader.read_exact(&mut byte).expect("a byte");
        sender.send(byte[0]).expect("the test listens");
        None
    };
    let first = watch(there, ready).expect("the only one");
    for byte in 0..3 {
        here.write_all(&[byte]).expect("sent");
        assert_eq!(bytes.recv_timeout(WAIT_MAX), Ok(byte));
    }
    let (_other, second) = UnixStream::pair().expect("descriptors");
    assert_eq!(watch(second, || None).expect_err("one at a time").kind(), ErrorKind::AlreadyExists);
    drop(first);
    assert!(bytes.recv_timeout(WAIT_MAX).is_err(), "the source is dropped");
}

#[test]
fn catches_signals_and_restores_their_handlers() {
    assert_a_source_is_watched();
    let (_watch, watched, _source) = watch_paused();
    let own = own as extern "C" fn(c_int) as usize;
    set(libc::SIGUSR1, own);
    set(libc::SIGINT, libc::SIG_DFL);
    let first = Signals::catch(&CAUGHT).expect("the system permits it");
    assert_ne!(handler_of(libc::SIGUSR1), own);
    assert_ne!(handler_of(libc::SIGTERM), libc::SIG_DFL);
    assert_ne!(
        flags_of(libc::SIGTERM) & libc::SA_ONSTACK,
        0,
        "the current stack may be a coroutine's, and small"
    );

    // Signals before an action is set are queued, within a bound. The program's own handler is called at
    // once.
    let second = Signals::catch(&CAUGHT).expect("the system permits it");
    raise(libc::SIGINT);
    raise(libc::SIGUSR1);
    assert_eq!(calls(), 1);
    let heard = listening(&first);
    assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Interrupt));
    assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::User1));
    for _ in 0..SIGNALS_QUEUED_MAX {
        raise(libc::SIGTERM);
        assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Terminate));
    }
    assert_eq!(listening(&second).try_iter().count(), SIGNALS_QUEUED_MAX, "each has its own queue");

    // The others still receive signals after one is dropped.
    drop(first);
    let heard = listening(&second);
    raise(libc::SIGTERM);
    assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Terminate));

    // An action that panics ends neither its own listener nor others.
    let third = Signals::catch(&CAUGHT).expect("the system permits it");
    let (sender, calls_of_third) = sync_channel(1);
    third.act(move |signal| {
        sender.send(signal).expect("the test listens");
        panic!("as the test wants it");
    });
    for _ in 0..2 {
        raise(libc::SIGTERM);
        assert_eq!(calls_of_third.recv_timeout(WAIT_MAX), Ok(Signal::Terminate));
        assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Terminate));
    }
    drop(third);
    drop(second);
    assert_eq!(handler_of(libc::SIGUSR1), own);
    assert_eq!(handler_of(libc::SIGINT), libc::SIG_DFL);
    assert_eq!(handler_of(libc::SIGTERM), libc::SIG_DFL);
    raise(libc::SIGUSR1);
    assert_eq!(calls(), 1);
    assert_later_catches_see_what_the_program_has_set(own);
    assert_eq!(watched.try_iter().count(), 1, "signals don't shorten its pause");
}

fn assert_later_catches_see_what_the_program_has_set(own: usize) {
    // A handler installed on top meanwhile stays, and ours is not installed twice.
    let fourth = Signals::catch(&CAUGHT).expect("the system permits it");
    let ours = handler_of(libc::SIGUSR1);
    set(libc::SIGUSR1, own);
    let fifth = Signals::catch(&CAUGHT).expect("the system permits it");
    assert_eq!(handler_of(libc::SIGUSR1), own, "a chained handler may call ours");
    drop((fourth, fifth));
    assert_eq!(handler_of(libc::SIGUSR1), own);

    // A signal that the program has since set to the default is caught again, and restored to that.
    for signal in [libc::SIGUSR1, libc::SIGTERM] {
        set(signal, libc::SIG_DFL);
    }
    let sixth = Signals::catch(&CAUGHT).expect("the system permits it");
    assert_eq!([libc::SIGUSR1, libc::SIGTERM].map(handler_of), [ours, ours]);
    let heard = listening(&sixth);
    raise(libc::SIGUSR1);
    assert_eq!(
        (heard.recv_timeout(WAIT_MAX), calls()),
        (Ok(Signal::User1), 0),
        "the program's handler isn't called"
    );
    drop(sixth);
    assert_eq!([libc::SIGUSR1, libc::SIGTERM].map(handler_of), [libc::SIG_DFL; 2]);

    // An ignored signal is caught, and ignored again afterwards.
    set(libc::SIGINT, libc::SIG_IGN);
    let seventh = Signals::catch(&CAUGHT).expect("the system permits it");
    assert_eq!([libc::SIGINT, libc::SIGTERM].map(handler_of), [ours, ours]);
    // A further signal is caught for one of two listeners, until both are dropped.
    assert_eq!(handler_of(libc::SIGHUP), libc::SIG_DFL, "a signal that nobody wants keeps its effect");
    let eighth = Signals::catch(&[Signal::Hangup]).expect("the system permits it");
    assert_eq!(handler_of(libc::SIGHUP), ours);
    let heard = listening(&eighth);
    raise(libc::SIGHUP);
    assert_eq!(heard.recv_timeout(WAIT_MAX), Ok(Signal::Hangup));
    drop(eighth);
    drop(seventh);
    assert_eq!(handler_of(libc::SIGHUP), libc::SIG_DFL);
    assert_eq!([libc::SIGINT, libc::SIGTERM].map(handler_of), [libc::SIG_IGN, libc::SIG_DFL]);
}
