//! Stack overflows. A program without the test harness: it runs itself as the process that dies.
#![expect(unsafe_code, reason = "only undefined behaviour causes a fault")]

#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::rc::Rc;
use std::{env, mem, ptr, thread};

use shearwater_tasks::{Coroutine, Options, StackOptions, Stacks, Suspend, Tasks, yield_now};

/// The action of the child process.
const ROLE: &str = "SHEARWATER_OVERFLOW_ROLE";
const STACK_BYTES: usize = 128 * 1024;
/// Exit status of a process whose fault reached the previous handler.
const STATUS_OF_ANOTHER: i32 = 77;

fn main() {
    match env::var(ROLE) {
        Ok(role) => end(&role),
        Err(_) => run_tests(),
    }
}

/// The way in which a role's process ends.
enum RoleEnd {
    /// Aborted, after the report of an overflow with this label.
    Reported(&'static str),
    /// Aborted by the standard library, as an overflow of a thread's own stack.
    OwnStack,
    /// One of these signals, which isn't reported as an overflow.
    Fault(&'static [i32]),
    /// `STATUS_OF_ANOTHER`: the previous handler ran.
    PreviousHandler,
}

const ROLES: &[(&str, RoleEnd)] = &[
    ("overflow", RoleEnd::Reported("/recursion")),
    ("thread", RoleEnd::Reported("/recursion")),
    ("no-stack-for-handlers", RoleEnd::Reported("/recursion")),
    ("waited", RoleEnd::Reported("/waited")),
    ("inner", RoleEnd::Reported("/inner")),
    ("outer", RoleEnd::Reported("/outer")),
    ("unwound", RoleEnd::Reported("/unwound")),
    ("own-stack", RoleEnd::OwnStack),
    ("fault", RoleEnd::Fault(&[libc::SIGSEGV, libc::SIGBUS])),
    ("fault-by-default", RoleEnd::Fault(&[libc::SIGSEGV])),
    ("fault-inside", RoleEnd::Fault(&[libc::SIGSEGV, libc::SIGBUS])),
    ("sent-by-default", RoleEnd::Fault(&[libc::SIGSEGV])),
    ("sent-ignored", RoleEnd::Fault(&[libc::SIGSEGV])),
    ("sent-to-another", RoleEnd::PreviousHandler),
];

fn run_tests() {
    let program = env::current_exe().expect("this program is a file");
    for (role, end) in ROLES {
        let output = Command::new(&program).env(ROLE, role).output().expect("it can be started again");
        let errors = String::from_utf8_lossy(&output.stderr);
        let status = (output.status.signal(), output.status.code());
        let is_reported = errors.contains("shearwater:");
        let is_expected = match end {
            RoleEnd::Reported(label) => {
                let line = format!(
                    "shearwater: coroutine {label} has overflowed its stack of {STACK_BYTES} bytes; it needs a larger one, or less recursion\n"
                );
                status.0 == Some(libc::SIGABRT) && errors.ends_with(&line)
            }
            RoleEnd::OwnStack => {
                let is_overflow = errors.contains("has overflowed its stack");
                status.0 == Some(libc::SIGABRT) && is_overflow && !is_reported
            }
            RoleEnd::Fault(signals) => {
                status.0.is_some_and(|signal| signals.contains(&signal)) && !is_reported
            }
            RoleEnd::PreviousHandler => status.1 == Some(STATUS_OF_ANOTHER),
        };
        assert!(is_expected, "{role}: {status:?} {errors}");
        println!("test {role} ... ok");
    }
    println!("test result: ok. {} passed", ROLES.len());
}

/// Ends the process. Returning is a failure that shows in the exit status.
fn end(role: &str) {
    match role {
        "fault-by-default" | "sent-by-default" => handle(libc::SIG_DFL),
        "sent-ignored" => handle(libc::SIG_IGN),
        "sent-to-another" => handle(another as *const () as usize),
        "no-stack-for-handlers" => no_stack_for_handlers(),
        _ => {}
    }
    let stacks = stacks();
    match role {
        "overflow" | "no-stack-for-handlers" => run(&stacks, "/recursion", |_| overflow()),
        "thread" => on_another_thread(),
        "waited" => run(&stacks, "/waited", |suspend| {
            suspend.wait(yield_now());
            overflow();
        }),
        "inner" => run(&stacks, "/outer", outer(&stacks, |_| overflow())),
        "outer" => run(&stacks, "/outer", {
            let inner = outer(&stacks, |_| ());
            move |suspend| {
                inner(suspend);
                overflow();
            }
        }),
        "unwound" => run_and_cancel(&stacks),
        "own-stack" => overflow(),
        "fault" | "fault-by-default" => fault(),
        "sent-by-default" | "sent-ignored" | "sent-to-another" => send(),
        "fault-inside" => run(&stacks, "/fault", |_| fault()),
        other => panic!("no role {other}"),
    }
}

fn stacks() -> Rc<Stacks> {
    let options = StackOptions { stack_bytes: STACK_BYTES, ..StackOptions::default() };
    Stacks::new(options).expect("the system has memory")
}

fn run(stacks: &Rc<Stacks>, label: &str, body: impl FnOnce(&Suspend<'_>) + 'static) {
    let mut tasks = Tasks::new(Options::default(), || ());
    let Ok(id) = tasks.spawn(0, Coroutine::new(stacks, label.into(), body)) else {
        panic!("the queue has room")
    };
    while !tasks.is_empty() {
        tasks.poll(id);
    }
}

fn on_another_thread() {
    let worker = || run(&stacks(), "/recursion", |_| overflow());
    thread::spawn(worker).join().expect("it ends the process");
}

/// A body that runs another coroutine to its end.
fn outer(
    stacks: &Rc<Stacks>,
    body: impl FnOnce(&Suspend<'_>) + 'static,
) -> impl FnOnce(&Suspend<'_>) + 'static {
    let inner = Coroutine::new(stacks, "/inner".into(), body);
    move |suspend: &Suspend<'_>| suspend.wait(inner)
}

fn run_and_cancel(stacks: &Rc<Stacks>) {
    struct Deep;
    impl Drop for Deep {
        fn drop(&mut self) {
            overflow();
        }
    }
    let body = |suspend: &Suspend<'_>| {
        let _deep = Deep;
        suspend.wait(std::future::pending::<()>());
    };
    let mut tasks = Tasks::new(Options::default(), || ());
    let Ok(id) = tasks.spawn(0, Coroutine::new(stacks, "/unwound".into(), body)) else {
        panic!("the queue has room")
    };
    tasks.poll(id);
    tasks.cancel(id);
}

/// Uses more stack than any thread has.
fn overflow() {
    assert!(depth(1) > 0);
}

fn depth(number: u64) -> u64 {
    let frame = std::hint::black_box([number; 32]);
    if frame[0] == 0 { 0 } else { depth(frame[1] + 1) + frame[2] }
}

/// Touches an unmapped address.
fn fault() {
    // SAFETY: none: it is meant to kill the process.
    unsafe { ptr::with_exposed_provenance::<u8>(0x10).read_volatile() };
}

/// Sets a fault's handler before the crate does.
fn handle(handler: libc::sighandler_t) {
    // SAFETY: a handler of one argument, or a constant for an action.
    unsafe { libc::signal(libc::SIGSEGV, handler) };
}

/// A handler of one argument.
extern "C" fn another(_: libc::c_int) {
    // SAFETY: it has no preconditions and is async-signal-safe.
    unsafe { libc::_exit(STATUS_OF_ANOTHER) };
}

/// Sends this thread the signal of a fault.
fn send() {
    // SAFETY: it has no preconditions.
    unsafe { libc::raise(libc::SIGSEGV) };
}

/// Disables the signal stack that the standard library has set.
fn no_stack_for_handlers() {
    // SAFETY: integers and a nullable pointer, for which zero is a valid value.
    let mut none: libc::stack_t = unsafe { mem::zeroed() };
    none.ss_flags = libc::SS_DISABLE;
    // SAFETY: it sets no memory, and returns nothing.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
}
