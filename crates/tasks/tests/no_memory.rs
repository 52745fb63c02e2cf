//! Starting a coroutine without memory for a stack. A separate binary: the limit applies to the process.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "a process is limited by a system call alone")]

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use shearwater_tasks::{Coroutine, Options, Polled, StackOptions, Stacks, Suspend, TaskId, Tasks, yield_now};

const STACK_BYTES: usize = 256 * 1024 * 1024;
/// Memory beyond the present use: one stack, and not two.
const ROOM_BYTES: usize = STACK_BYTES + STACK_BYTES / 2;

#[test]
fn without_memory_a_coroutine_waits_for_the_stack_of_another() {
    let options = StackOptions { stack_bytes: STACK_BYTES, ..StackOptions::default() };
    let stacks = Stacks::new(options).expect("there is memory for this");
    let mut tasks = Tasks::new(Options::default(), || ());
    let ended = Rc::new(Cell::new(0));
    let ids: Vec<_> = (0..3).map(|_| start(&mut tasks, &stacks, &ended)).collect();
    leave_room_for(ROOM_BYTES);

    for id in &ids {
        assert_eq!(tasks.poll(*id), Polled::Pending);
    }
    assert_eq!((stacks.lent(), stacks.waiting()), (1, 2));
    while !tasks.is_empty() {
        tasks.collect();
        assert!(tasks.ready() > 0, "nobody is forgotten");
        while let Some(id) = tasks.next() {
            tasks.poll(id);
        }
    }
    assert_eq!((ended.get(), stacks.lent(), stacks.spare()), (3, 0, 1));

    // If no stack is in use that could be released, it fails at once.
    drop(stacks);
    leave_room_for(STACK_BYTES / 2);
    let stacks = Stacks::new(options).expect("there is memory for this");
    let id = start(&mut tasks, &stacks, &ended);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    let words = panic.downcast_ref::<String>().expect("a text");
    assert!(words.starts_with("no memory for the stack of coroutine test: "), "{words}");
    assert_eq!((tasks.len(), stacks.lent(), stacks.waiting()), (0, 0, 0));
}

fn start(tasks: &mut Tasks, stacks: &Rc<Stacks>, ended: &Rc<Cell<usize>>) -> TaskId {
    let ended = Rc::clone(ended);
    let body = move |suspend: &Suspend<'_>| {
        suspend.wait(yield_now());
        ended.set(ended.get() + 1);
    };
    let Ok(id) = tasks.spawn(0, Coroutine::new(stacks, "test".into(), body)) else {
        panic!("the queue has room")
    };
    id
}

/// Limits the process's memory to its present use plus `bytes`.
fn leave_room_for(bytes: usize) {
    let pages = fs::read_to_string("/proc/self/statm").expect("the system reports it");
    let pages: usize = pages.split(' ').next().expect("a first number").parse().expect("a number");
    // SAFETY: it touches no memory.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let most = (pages * usize::try_from(page_bytes).expect("a size") + bytes) as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it only reads the limit passed.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}
