//! The steady state allocates nothing. A separate binary: the counter replaces the process's allocator.
#![expect(
    unsafe_code,
    reason = "the only way to count allocations is to be the allocator, which is an unsafe trait"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use shearwater_tasks::{Coroutine, Options, Order, StackOptions, Stacks, Suspend, Tasks, Timers, yield_now};

const ROUNDS: usize = 1000;
/// Tasks of each kind, in every round.
const TASKS: u64 = 20;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches a constant-initialised thread-local
// without a destructor, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A worker and the state of its tasks.
struct Worker {
    tasks: Tasks,
    timers: Rc<Timers>,
    stacks: Rc<Stacks>,
    label: Rc<str>,
    ended: Rc<Cell<usize>>,
    /// Wakers of the tasks that wait for another.
    wakers: Rc<RefCell<Vec<Waker>>>,
}

impl Worker {
    fn new(order: Order) -> Self {
        Self {
            tasks: Tasks::new(Options { order, ..Options::default() }, || ()),
            timers: Timers::new(),
            stacks: Stacks::new(StackOptions::default()).expect("the system has memory"),
            label: "test".into(),
            ended: Rc::default(),
            wakers: Rc::default(),
        }
    }

    fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        let ended = Rc::clone(&self.ended);
        let counted = async move {
            future.await;
            ended.set(ended.get() + 1);
        };
        let Ok(id) = self.tasks.spawn(0, counted) else { panic!("the queue has room") };
        self.tasks.poll(id);
    }

    /// Runs tasks of every kind from start to end, and cancels some. Returns how many ended.
    fn round(&mut self) -> usize {
        for number in 0..TASKS {
            let large = [1_u8; 3000];
            self.spawn(async move {
                yield_now().await;
                assert_eq!(large[number as usize], 1);
            });
            let timers = Rc::clone(&self.timers);
            self.spawn(async move { timers.sleep(Duration::from_millis(number % 7)).await });
            let (wakers, mut waits) = (Rc::clone(&self.wakers), true);
            self.spawn(poll_fn(move |context| {
                if mem::take(&mut waits) {
                    wakers.borrow_mut().push(context.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(())
            }));
            let timers = Rc::clone(&self.timers);
            let body = move |suspend: &Suspend<'_>| {
                suspend.wait(yield_now());
                suspend.wait(timers.sleep(Duration::from_millis(number % 5)));
            };
            self.spawn(Coroutine::new(&self.stacks, Rc::clone(&self.label), body));
            let Ok(asleep) = self.tasks.spawn(number, self.timers.sleep(Duration::from_secs(1))) else {
                panic!("the queue has room")
            };
            self.tasks.poll(asleep);
            self.tasks.cancel(asleep);
        }
        for _ in 0..10 {
            self.turn();
        }
        self.ended.take()
    }

    fn turn(&mut self) {
        self.timers.set_now_ms(self.timers.now_ms() + 1);
        self.timers.expire();
        let mut wakers = self.wakers.borrow_mut();
        wakers.drain(..).for_each(Waker::wake);
        drop(wakers);
        self.tasks.collect();
        while let Some(id) = self.tasks.next() {
            self.tasks.poll(id);
        }
    }
}

fn many_rounds_allocate_nothing(order: Order) {
    let before = ALLOCATIONS.get();
    let mut worker = Worker::new(order);
    assert!(ALLOCATIONS.get() > before, "the counter counts");
    for _ in 0..3 {
        worker.round();
    }
    let warm = ALLOCATIONS.get();
    let ended: usize = (0..ROUNDS).map(|_| worker.round()).sum();
    assert_eq!(ALLOCATIONS.get() - warm, 0);
    assert_eq!(ended, ROUNDS * 4 * TASKS as usize);
    assert!(worker.tasks.is_empty() && worker.timers.is_empty());
    assert_eq!(worker.stacks.lent(), 0);
}

#[test]
fn tasks_of_every_kind_allocate_nothing() {
    many_rounds_allocate_nothing(Order::Fifo);
}

#[test]
fn nor_do_they_in_the_other_order() {
    many_rounds_allocate_nothing(Order::Lifo);
}
