//! Stack overflows. A program without the test harness: it runs itself as the process that dies.
#![expect(unsafe_code, reason = "only undefined behaviour causes a fault")]

#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
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

type Test = (&'static str, fn());

fn run_tests() {
    let tests: [Test; 6] = [
        ("an overflow is told by label and size", an_overflow_is_told),
        ("so it is on any thread, behind a wait, within another coroutine", so_it_is_anywhere),
        ("while a stack is unwound too", while_a_stack_is_unwound_too),
        ("the overflow of a thread's own stack is the standard library's", own_stacks_are_not_ours),
        ("any other fault ends the process as it would have", other_faults_go_on),
        ("a fault in a coroutine that is no overflow is not told as one", other_faults_in_a_coroutine),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("test result: ok. {} passed", tests.len());
}

/// Runs this program in a role.
fn in_role(role: &str) -> (Output, String) {
    let program = env::current_exe().expect("this program is a file");
    let output = Command::new(program).env(ROLE, role).output().expect("it can be started again");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

fn assert_told(role: &str, label: &str) {
    let (output, errors) = in_role(role);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{role}: {errors}");
    let line = format!(
        "shearwater: coroutine {label} has overflowed its stack of {STACK_BYTES} bytes; it needs a larger one, or less recursion\n"
    );
    assert!(errors.ends_with(&line), "{role}: {errors}");
}

fn an_overflow_is_told() {
    assert_told("overflow", "/recursion");
}

fn so_it_is_anywhere() {
    assert_told("thread", "/recursion");
    assert_told("no-stack-for-handlers", "/recursion");
    assert_told("waited", "/waited");
    assert_told("inner", "/inner");
    assert_told("outer", "/outer");
}

fn while_a_stack_is_unwound_too() {
    assert_told("unwound", "/unwound");
}

fn own_stacks_are_not_ours() {
    let (output, errors) = in_role("own-stack");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{errors}");
    assert!(errors.contains("has overflowed its stack") && !errors.contains("shearwater:"), "{errors}");
}

fn other_faults_go_on() {
    let (output, errors) = in_role("fault");
    assert!([Some(libc::SIGSEGV), Some(libc::SIGBUS)].contains(&output.status.signal()), "{errors}");
    assert!(!errors.contains("shearwater:"), "{errors}");
    for role in ["fault-by-default", "sent-by-default", "sent-ignored"] {
        let (output, errors) = in_role(role);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{role}: {errors}");
    }
    let (output, errors) = in_role("sent-to-another");
    assert_eq!(output.status.code(), Some(STATUS_OF_ANOTHER), "{errors}");
}

fn other_faults_in_a_coroutine() {
    let (output, errors) = in_role("fault-inside");
    assert!([Some(libc::SIGSEGV), Some(libc::SIGBUS)].contains(&output.status.signal()), "{errors}");
    assert!(!errors.contains("shearwater:"), "{errors}");
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
