//! Signals of users and service managers: caught while a listener exists, restored afterwards.

#![expect(unsafe_code, reason = "installs signal handlers by system calls with pointers")]

use std::ffi::{c_int, c_void};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::{self, MaybeUninit};
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, process, ptr, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::limits::SIGNALS_QUEUED_MAX;

/// A caught signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGQUIT`: Ctrl-\.
    Quit,
    /// `SIGHUP`.
    Hangup,
}

/// The signals, in the order of [`NUMBERS`].
const SIGNALS: [Signal; 6] =
    [Signal::Interrupt, Signal::Terminate, Signal::User1, Signal::Quit, Signal::Hangup, Signal::User2];
const NUMBERS: [c_int; SIGNALS.len()] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGQUIT, libc::SIGHUP, libc::SIGUSR2];

/// Byte in the handler's pipe for a change of the caught signals or of the watched source: the index of none.
const CHANGED: u8 = u8::MAX;

/// Pause in watching a source whose function has panicked.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// Catches the signals until it is dropped, also those that the caller's threads block.
///
/// They are queued until [`act`](Self::act) sets an action. A handler that the program had installed before
/// is called too. Dropping the last `Signals` of the process restores each signal's previous action.
///
/// A handler that the program has installed over this one stays: its signal is caught only if it calls the
/// one that it has replaced.
#[must_use = "dropped, it catches nothing"]
pub struct Signals(Arc<Mutex<SignalListener>>);

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// Queues signals, or acts on them.
enum SignalListener {
    Queues(Vec<Signal>),
    /// Calls this, on the signal thread.
    Acts(Box<dyn FnMut(Signal) + Send>),
}

impl SignalListener {
    fn handle(&mut self, signal: Signal) {
        match self {
            Self::Acts(act) => act(signal),
            Self::Queues(queue) if queue.len() < SIGNALS_QUEUED_MAX => queue.push(signal),
            Self::Queues(_) => {}
        }
    }
}

impl Signals {
    /// Catches these signals from now on, and any others that another `Signals` catches.
    ///
    /// # Errors
    /// Fails if the system refuses a pipe, a thread or a handler.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        let listener = Arc::new(Mutex::new(SignalListener::Queues(Vec::new())));
        let mut process = lock(&PROCESS);
        if WRITER.get().is_none() {
            start_thread()?;
        }
        let installed = process.install(signals);
        if installed.is_err() && process.listeners.is_empty() {
            process.restore();
        }
        note_change();
        installed?;
        process.listeners.push(Arc::clone(&listener));
        Ok(Self(listener))
    }

    /// Returns whether one of these signals is queued.
    #[must_use]
    pub fn has_queued(&self, signals: &[Signal]) -> bool {
        match &*lock(&self.0) {
            SignalListener::Queues(queue) => queue.iter().any(|signal| signals.contains(signal)),
            SignalListener::Acts(_) => false,
        }
    }

    /// Calls `act` for each signal, queued ones first.
    pub fn act(&self, mut act: impl FnMut(Signal) + Send + 'static) {
        let mut listener = lock(&self.0);
        if let SignalListener::Queues(queue) = &mut *listener {
            queue.drain(..).for_each(&mut act);
        }
        *listener = SignalListener::Acts(Box::new(act));
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let mut process = lock(&PROCESS);
        process.listeners.retain(|listener| !Arc::ptr_eq(listener, &self.0));
        if process.listeners.is_empty() {
            process.restore();
            note_change();
        }
    }
}

/// A descriptor that the signal thread watches until this is dropped.
#[derive(Debug)]
#[must_use = "dropped, nothing is watched"]
pub struct Watch(());

/// Calls `ready` on the signal thread each time `source` can be read. It must not block, since signals wait for it.
///
/// The source isn't watched for as long as `ready` returns, so that a condition that lasts is no busy loop.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the process watches a source already; otherwise as [`Signals::catch`].
pub fn watch(
    source: impl AsFd + Send + Sync + 'static,
    ready: impl FnMut() -> Option<Duration> + Send + 'static,
) -> io::Result<Watch> {
    let mut process = lock(&PROCESS);
    if process.watched.is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if WRITER.get().is_none() {
        start_thread()?;
    }
    let ready: Box<Ready> = Box::new(ready);
    let state = Mutex::new(WatchState { ready, paused_until: None });
    process.watched = Some(Arc::new(Watched { source: Box::new(source), state }));
    note_change();
    Ok(Watch(()))
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&PROCESS).watched = None;
        note_change();
    }
}

/// A watched source.
struct Watched {
    source: Box<dyn AsFd + Send + Sync>,
    /// Used by the signal thread alone.
    state: Mutex<WatchState>,
}

struct WatchState {
    ready: Box<Ready>,
    paused_until: Option<Instant>,
}

type Ready = dyn FnMut() -> Option<Duration> + Send;

/// Sets the signals of a program that writes files and may be process 1. Call it first in `main`.
///
/// `SIGXFSZ` is ignored: a write beyond `RLIMIT_FSIZE` fails with `EFBIG` then. `SIGCHLD` is ignored by process 1, so that
/// the system reaps orphans, and has its usual effect otherwise, whatever the parent has set: only then a process can
/// wait for its children. A process 1 that starts children can't wait for them.
pub fn set_for_program() {
    let child = if process::id() == 1 { libc::SIG_IGN } else { libc::SIG_DFL };
    for (number, effect) in [(libc::SIGXFSZ, libc::SIG_IGN), (libc::SIGCHLD, child)] {
        // SAFETY: integers and nullable pointers, for which zero is a valid value.
        let mut new: libc::sigaction = unsafe { mem::zeroed() };
        new.sa_sigaction = effect;
        // A sandbox that refuses it leaves the parent's choice.
        drop(action(number, Some(&new)));
    }
    // Children of the program that this one has replaced, such as a shell's: they ended before. Each turn has one fewer.
    while process::id() == 1 && matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
}

/// Sends `SIGHUP` to another process.
///
/// # Errors
/// Fails if there is no such process, or it is another user's.
pub fn hang_up(process: u32) -> io::Result<()> {
    let number = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let number = number.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(number, rustix::process::Signal::HUP)?)
}

/// The process's listeners, and each signal's previous action.
struct Process {
    listeners: Vec<Arc<Mutex<SignalListener>>>,
    /// `None` if our handler wasn't installed.
    before: [Option<libc::sigaction>; SIGNALS.len()],
    watched: Option<Arc<Watched>>,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { listeners: Vec::new(), before: [None; SIGNALS.len()], watched: None });

/// The writing end of the handler's pipe. Never closed: a handler may be about to use it.
static WRITER: OnceLock<PipeWriter> = OnceLock::new();

/// The previous handlers, by signal, which ours calls.
static CHAINED: [Chained; SIGNALS.len()] = [const { Chained::none() }; SIGNALS.len()];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that calls the listeners, for as long as the process lives.
fn start_thread() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || deliver(reader))?;
    WRITER.get_or_init(|| writer);
    Ok(())
}

/// Has the thread unblock the signals that are caught by now, and watch the present source.
fn note_change() {
    // The pipe is full only if thousands of signals are undelivered.
    let _ = WRITER.get().map(|writer| rustix::io::write(writer, &[CHANGED]));
}

fn deliver(mut reader: PipeReader) {
    let inherited = exchange_mask(None);
    let mut byte = [0];
    loop {
        serve_watched(&reader);
        if reader.read_exact(&mut byte).is_err() {
            return;
        }
        let Some(&signal) = SIGNALS.get(usize::from(byte[0])) else {
            unblock(inherited, &lock(&PROCESS).before);
            continue;
        };
        // An action may drop a `Signals`, which needs the lock.
        let listeners = lock(&PROCESS).listeners.clone();
        for listener in &listeners {
            // An action that panics must not end this thread. The hook has reported the panic.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| lock(listener).handle(signal)));
        }
    }
}

/// Serves the watched source, if there is one, until the pipe has a byte.
fn serve_watched(reader: &PipeReader) {
    let Some(watched) = lock(&PROCESS).watched.clone() else { return };
    let mut state = lock(&watched.state);
    loop {
        let pause = state.paused_until.map(|until| until.saturating_duration_since(Instant::now()));
        match await_either(reader, &watched.source, pause) {
            Ok((true, _)) => return,
            Ok((false, true)) => {
                // The hook has reported a panic, which must not end this thread.
                let pause = panic::catch_unwind(AssertUnwindSafe(&mut state.ready));
                let pause = pause.unwrap_or(Some(PANIC_PAUSE));
                state.paused_until = pause.and_then(|pause| Instant::now().checked_add(pause));
            }
            // The pause is over.
            Ok((false, false)) => state.paused_until = None,
            Err(Errno::INTR) => {}
            // Without the call, signals alone are handled.
            Err(_) => return,
        }
    }
}

/// Waits until the pipe or the source can be read; during a pause of the source, for the pipe alone.
fn await_either(
    reader: &PipeReader,
    source: &dyn AsFd,
    pause: Option<Duration>,
) -> rustix::io::Result<(bool, bool)> {
    let of = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut both = [of(reader.as_fd()), of(source.as_fd())];
    let polled = if pause.is_some() { &mut both[..1] } else { &mut both[..] };
    let pause = pause
        .map(|pause| Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) });
    poll(polled, pause.as_ref())?;
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    Ok((is_ready(&both[0]), is_ready(&both[1])))
}

/// Sets this thread's mask: the inherited one without the signals that are caught. Programs that wait for signals block
/// them, and their children inherit that.
fn unblock(mut mask: libc::sigset_t, caught: &[Option<libc::sigaction>; SIGNALS.len()]) {
    for (number, _) in NUMBERS.into_iter().zip(caught).filter(|(_, before)| before.is_some()) {
        // SAFETY: the set is initialised.
        unsafe { libc::sigdelset(&raw mut mask, number) };
    }
    exchange_mask(Some(&mask));
}

/// Sets this thread's mask of blocked signals, if given, and returns the previous one.
fn exchange_mask(new: Option<&libc::sigset_t>) -> libc::sigset_t {
    // SAFETY: integers, for which zero is a valid value. It remains if a sandbox refuses the call.
    let mut old: libc::sigset_t = unsafe { mem::zeroed() };
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or a set, and `old` has space for one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, new, &raw mut old) };
    old
}

impl Process {
    /// Installs our handler for each of these signals, unless it is there already or beneath one installed on top of
    /// it. Catches ignored signals too, such as `SIGINT` in a background job of a script: a `kill -INT` must
    /// drain it.
    fn install(&mut self, signals: &[Signal]) -> io::Result<()> {
        for (index, number) in
            NUMBERS.into_iter().enumerate().filter(|(index, _)| signals.contains(&SIGNALS[*index]))
        {
            let (before, chained) = (&mut self.before[index], &CHAINED[index]);
            let found = action(number, None)?;
            if before.is_none() || !has_handler(&found) {
                chained.set(&found);
                action(number, Some(&our_action()))?;
                *before = Some(found);
            }
        }
        Ok(())
    }

    /// Restores the previous actions. A handler installed on top of ours stays: it may call ours, which then
    /// calls the one before.
    fn restore(&mut self) {
        for (before, number) in self.before.iter_mut().zip(NUMBERS) {
            let is_ours = action(number, None).is_ok_and(|now| now.sa_sigaction == our_action().sa_sigaction);
            if let Some(found) = before.take_if(|_| is_ours) {
                // The system has accepted this action before.
                drop(action(number, Some(&found)));
            }
        }
    }
}

fn our_action() -> libc::sigaction {
    let handler: HandlerOfThree = on_signal;
    // SAFETY: integers and nullable pointers, for which zero is a valid value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // The current stack may be a coroutine's, which is small.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    action
}

fn has_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

/// Returns true if the process ignores `SIGHUP`: it was started by `nohup` or the like.
#[must_use]
pub fn ignores_hangup() -> bool {
    action(libc::SIGHUP, None).is_ok_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

/// Returns true if the process has a controlling terminal that is still there.
#[must_use]
pub fn has_terminal() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open("/dev/tty", flags, Mode::empty()).is_ok()
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
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(index) = NUMBERS.iter().position(|known| *known == signal) else { return };
    if let Some(writer) = WRITER.get() {
        // The pipe is full only if thousands of signals are undelivered. On Linux this call doesn't change
        // `errno`.
        let _ = rustix::io::write(writer, &[index as u8]);
    }
    CHAINED[index].call(signal, info, context);
}

type HandlerOfThree = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type HandlerOfOne = extern "C" fn(c_int);

/// The previously installed handler.
struct Chained {
    /// 0 for none.
    address: AtomicUsize,
    takes_three: AtomicBool,
}

impl Chained {
    const fn none() -> Self {
        Self { address: AtomicUsize::new(0), takes_three: AtomicBool::new(false) }
    }

    /// Stores the handler of an action. Ours isn't installed, so nothing calls this one meanwhile.
    fn set(&self, action: &libc::sigaction) {
        self.takes_three.store(action.sa_flags & libc::SA_SIGINFO != 0, Ordering::Relaxed);
        self.address.store(if has_handler(action) { action.sa_sigaction } else { 0 }, Ordering::Release);
    }

    #[expect(clippy::disallowed_methods, reason = "no other conversion makes a function of an address")]
    fn call(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let address = self.address.load(Ordering::Acquire);
        if address == 0 {
            return;
        }
        let address = ptr::with_exposed_provenance::<()>(address);
        if self.takes_three.load(Ordering::Relaxed) {
            // SAFETY: it is the address of a handler with three arguments, according to its action's flags.
            let handler = unsafe { mem::transmute::<*const (), HandlerOfThree>(address) };
            handler(signal, info, context);
        } else {
            // SAFETY: it is the address of a handler with one argument, according to its action's flags.
            let handler = unsafe { mem::transmute::<*const (), HandlerOfOne>(address) };
            handler(signal);
        }
    }
}
