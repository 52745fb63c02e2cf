//! The steady state allocates nothing. A separate binary: the counter replaces the process's allocator.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use shearwater_tasks::{Coroutine, Options, Order, StackOptions, Stacks, Suspend, Tasks, Timers, yield_now};
use testkit::CountingAllocator;

const ROUNDS: usize = 1000;
/// Tasks of each kind, in every round.
const TASKS: u64 = 20;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// A worker and the state of its tasks.
struct BusyWorker {
    tasks: Tasks,
    timers: Rc<Timers>,
    stacks: Rc<Stacks>,
    label: Rc<str>,
    ended: Rc<Cell<usize>>,
    /// Wakers of the tasks that wait for another.
    wakers: Rc<RefCell<Vec<Waker>>>,
}

impl BusyWorker {
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

#[test]
fn tasks_of_each_kind_allocate_nothing_in_either_order() {
    let calls = || ALLOCATOR.on_this_thread().calls();
    for order in [Order::Fifo, Order::Lifo] {
        let before = calls();
        let mut worker = BusyWorker::new(order);
        assert!(calls() > before, "the counter counts");
        for _ in 0..3 {
            worker.round();
        }
        let warm = calls();
        let ended: usize = (0..ROUNDS).map(|_| worker.round()).sum();
        assert_eq!(calls() - warm, 0, "{order}");
        assert_eq!(ended, ROUNDS * 4 * TASKS as usize);
        assert!(worker.tasks.is_empty() && worker.timers.is_empty());
        assert_eq!(worker.stacks.lent(), 0);
    }
}
