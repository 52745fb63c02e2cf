//! Coroutines wait, end, panic and are cancelled as any task; and the pool of their stacks.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shearwater_tasks::limits::{BODY_BYTES_MAX, STACK_BYTES_MIN};
use shearwater_tasks::{Coroutine, Polled, StackOptions, Suspend, TaskId, Timers, yield_now};

use crate::{CoroutineWorker, Drops, TestEvent, message};

#[test]
fn a_body_that_never_waits_ends_in_the_first_poll() {
    let mut worker = CoroutineWorker::new();
    let done = Rc::new(Cell::new(false));
    let doing = Rc::clone(&done);
    let id = worker.spawn(move |suspend| {
        assert_eq!(suspend.wait(ready(7)), 7);
        doing.set(true);
    });
    worker.assert_left(1, 0, 0);
    assert!(!done.get(), "a stack is taken at the first poll");
    assert_eq!((worker.tasks.poll(id), done.get()), (Polled::Ready, true));
    worker.assert_left(0, 0, 1);
}

#[test]
fn a_body_continues_where_it_waited() {
    let (mut worker, timers) = (CoroutineWorker::new(), Timers::new());
    let (steps, clock) = (Rc::new(RefCell::new(Vec::new())), Rc::clone(&timers));
    let stepping = Rc::clone(&steps);
    worker.start(move |suspend| {
        let mut local = [0_u64; 100];
        for (number, value) in local.iter_mut().enumerate() {
            *value = number as u64;
            if number % 40 == 0 {
                suspend.wait(clock.sleep(Duration::from_millis(10)));
                stepping.borrow_mut().push((number, clock.now_ms()));
            }
        }
        assert_eq!(local.iter().sum::<u64>(), 99 * 100 / 2);
    });
    let mut polled = Vec::new();
    for now_ms in 0..40 {
        timers.set_now_ms(now_ms);
        timers.expire();
        polled.extend(worker.turn());
    }
    assert_eq!(*steps.borrow(), [(0, 10), (40, 20), (80, 30)]);
    assert_eq!(polled, [Polled::Pending, Polled::Pending, Polled::Ready]);
    assert_eq!(worker.stacks.lent(), 0);
}

#[test]
fn many_bodies_take_turns() {
    let mut worker = CoroutineWorker::new();
    let count = Rc::new(Cell::new(0));
    for _ in 0..50 {
        let count = Rc::clone(&count);
        worker.start(move |suspend| {
            for _ in 0..20 {
                suspend.wait(yield_now());
                count.set(count.get() + 1);
            }
        });
    }
    assert_eq!(worker.stacks.lent(), 50);
    for _ in 0..20 {
        assert_eq!(worker.turn().len(), 50);
    }
    assert_eq!((count.get(), worker.tasks.len(), worker.stacks.lent()), (1000, 0, 0));
}

#[test]
fn a_panic_comes_out_of_the_poll_and_releases_the_stack() {
    let (mut worker, drops) = (CoroutineWorker::new(), Drops::default());
    let kept = drops.one();
    let panics = worker.start(move |suspend| {
        let _kept = kept;
        suspend.wait(yield_now());
        panic!("on purpose");
    });
    assert_eq!((worker.poll_panics(panics), drops.count()), ("on purpose".to_owned(), 1));
    let resumes = worker.start(|suspend| {
        suspend.wait(yield_now());
        resume_unwind(Box::new("passed on"));
    });
    assert_eq!(worker.poll_panics(resumes), "passed on");
    worker.assert_left(0, 0, 1);
}

#[test]
fn a_body_may_catch_a_panic() {
    let mut worker = CoroutineWorker::new();
    worker.start(|suspend| {
        let polls = || suspend.wait(poll_fn(|_| -> Poll<()> { panic!("in a future") }));
        let caught = catch_unwind(AssertUnwindSafe(polls)).unwrap_err();
        assert_eq!(message(&*caught), "in a future");
        suspend.wait(yield_now());
    });
    assert_eq!(worker.turn(), [Polled::Ready]);
}

#[test]
fn cancelling_unwinds_the_stack() {
    let (mut worker, drops, event) = (CoroutineWorker::new(), Drops::default(), TestEvent::default());
    let (one, two, three, wait) = (drops.one(), drops.one(), drops.one(), event.wait());
    let reached = Rc::new(Cell::new(false));
    let reaching = Rc::clone(&reached);
    let id = worker.start(move |suspend| {
        let _one = one;
        let inner = move |_two| {
            suspend.wait(async move {
                let _three = three;
                wait.await;
            });
        };
        inner(two);
        reaching.set(true);
    });
    assert_eq!(drops.count(), 0);
    worker.tasks.cancel(id);
    assert_eq!((drops.count(), reached.get()), (3, false));
    worker.assert_left(0, 0, 1);
    event.happen();
    assert!(worker.turn().is_empty());
}

#[test]
fn a_body_that_was_never_polled_is_dropped_without_a_stack() {
    let (mut worker, drops) = (CoroutineWorker::new(), Drops::default());
    let kept = drops.one();
    let id = worker.spawn(move |_| drop(kept));
    worker.tasks.cancel(id);
    assert_eq!(drops.count(), 1);
    worker.assert_left(0, 0, 0);
}

#[test]
fn a_body_that_catches_its_end_is_unwound_again() {
    let (mut worker, drops) = (CoroutineWorker::new(), Drops::default());
    let (kept, reached) = (drops.one(), Rc::new(Cell::new(0)));
    let reaching = Rc::clone(&reached);
    let id = worker.start(move |suspend| {
        let _kept = kept;
        let caught = catch_unwind(AssertUnwindSafe(|| suspend.wait(pending::<()>())));
        reaching.set(1);
        assert!(caught.is_err());
        suspend.wait(ready(()));
        reaching.set(2);
    });
    worker.tasks.cancel(id);
    assert_eq!((reached.get(), drops.count(), worker.stacks.lent()), (1, 1, 0), "it doesn't wait again");
}

#[test]
fn a_panic_of_a_cancelled_body_comes_out() {
    let mut worker = CoroutineWorker::new();
    let id = worker.start(|suspend| {
        if catch_unwind(AssertUnwindSafe(|| suspend.wait(pending::<()>()))).is_err() {
            panic!("at its end");
        }
    });
    let panic = catch_unwind(AssertUnwindSafe(|| worker.tasks.cancel(id))).unwrap_err();
    assert_eq!(message(&*panic), "at its end");
    worker.assert_left(0, 0, 1);
}

#[test]
fn destructors_may_wait_for_ready_futures_while_they_unwind() {
    struct WaitsInDrop<'a>(&'a Suspend<'a>, Rc<Cell<u32>>);
    impl Drop for WaitsInDrop<'_> {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            self.1.set(self.0.wait(ready(7)));
        }
    }
    let mut worker = CoroutineWorker::new();
    for is_cancelled in [true, false] {
        let output = Rc::new(Cell::new(0));
        let writing = Rc::clone(&output);
        let id = worker.start(move |suspend| {
            let _waits = WaitsInDrop(suspend, writing);
            suspend.wait(yield_now());
            panic!("on purpose");
        });
        match is_cancelled {
            true => worker.tasks.cancel(id),
            false => assert_eq!(worker.poll_panics(id), "on purpose"),
        }
        assert_eq!((output.get(), worker.tasks.len()), (7, 0));
    }
}

#[test]
fn dropping_the_tasks_unwinds_their_stacks() {
    let (mut worker, drops) = (CoroutineWorker::new(), Drops::default());
    for _ in 0..3 {
        let kept = drops.one();
        worker.start(move |suspend| {
            let _kept = kept;
            suspend.wait(pending::<()>());
        });
    }
    let CoroutineWorker { tasks, stacks, .. } = worker;
    assert_eq!(stacks.lent(), 3);
    drop(tasks);
    assert_eq!((drops.count(), stacks.lent()), (3, 0));
}

#[test]
fn a_body_may_be_large() {
    let mut worker = CoroutineWorker::new();
    let large = [5_u8; 4 * BODY_BYTES_MAX];
    worker.start(move |suspend| {
        suspend.wait(yield_now());
        assert!(large.iter().all(|byte| *byte == 5));
    });
    assert_eq!(worker.turn(), [Polled::Ready]);
}

#[test]
fn a_body_may_wait_within_a_future_that_it_waits_for() {
    let (mut worker, event) = (CoroutineWorker::new(), TestEvent::default());
    let (inner, outer) = (event.wait(), event.wait());
    worker.start(move |suspend| {
        let mut inner = Some(inner);
        let mut outer = pin!(outer);
        suspend.wait(poll_fn(|context| {
            if let Some(inner) = inner.take() {
                suspend.wait(inner);
            }
            outer.as_mut().poll(context)
        }));
    });
    event.happen();
    assert_eq!(worker.turn(), [Polled::Ready]);
}

/// A waker that is distinct from others.
struct DistinctWaker;

impl Wake for DistinctWaker {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn an_inner_future_gets_the_waker_of_the_latest_poll() {
    let worker = CoroutineWorker::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let seeing = Rc::clone(&seen);
    let mut coroutine = pin!(Coroutine::new(&worker.stacks, "test".into(), move |suspend: &Suspend<'_>| {
        let mut inner = Some(yield_now());
        suspend.wait(poll_fn(|context| {
            seeing.borrow_mut().push(context.waker().clone());
            if let Some(inner) = inner.take() {
                suspend.wait(inner);
            }
            Poll::<()>::Pending
        }));
    }));
    let wakers: Vec<Waker> = (0..3).map(|_| Waker::from(Arc::new(DistinctWaker))).collect();
    let mut poll = |waker: &Waker| coroutine.as_mut().poll(&mut Context::from_waker(waker));
    assert!(poll(&wakers[0]).is_pending());
    assert!(poll(&wakers[1]).is_pending());
    assert!(seen.borrow().last().unwrap().will_wake(&wakers[1]), "not that of the poll in which it began");
    assert!(poll(&wakers[2]).is_pending());
    assert!(seen.borrow().last().unwrap().will_wake(&wakers[2]));
}

#[test]
fn a_coroutine_may_wait_for_another() {
    let (mut worker, drops) = (CoroutineWorker::new(), Drops::default());
    let (stacks, one, two) = (Rc::clone(&worker.stacks), drops.one(), drops.one());
    let id = worker.start(move |suspend| {
        let _one = one;
        let inner = Coroutine::new(&stacks, "inner".into(), move |suspend: &Suspend<'_>| {
            let _two = two;
            suspend.wait(yield_now());
            suspend.wait(pending::<()>());
        });
        suspend.wait(inner);
    });
    assert_eq!(worker.stacks.lent(), 2);
    assert_eq!(worker.turn(), [Polled::Pending]);
    worker.tasks.cancel(id);
    assert_eq!((drops.count(), worker.stacks.lent()), (2, 0));
}

#[test]
#[should_panic(expected = "coroutine test was polled after its end")]
fn polling_after_the_end_panics() {
    let worker = CoroutineWorker::new();
    let mut coroutine = pin!(Coroutine::new(&worker.stacks, "test".into(), |_: &Suspend<'_>| ()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(coroutine.as_mut().poll(&mut context).is_ready());
    let _again = coroutine.as_mut().poll(&mut context);
}

#[test]
fn coroutines_wait_for_a_stack_in_order() {
    let mut worker = CoroutineWorker::with_stacks(2, 10);
    let events: Vec<_> = (0..5).map(|_| TestEvent::default()).collect();
    for (number, event) in events.iter().enumerate() {
        worker.hold(number, event);
    }
    worker.assert_queue(2, 3, &[0, 1]);
    events[1].happen();
    worker.turn();
    worker.assert_queue(1, 3, &[0, 1]);
    worker.turn();
    worker.assert_queue(2, 2, &[0, 1, 2]);
    events.iter().for_each(TestEvent::happen);
    while !worker.turn().is_empty() {}
    worker.assert_queue(0, 0, &[0, 1, 2, 3, 4]);
    worker.assert_left(0, 0, 2);
}

/// Returns a worker whose only stack is held until an event, and the ids of others that wait for it, which a poll
/// doesn't move in the queue.
fn queue_for_one_stack(
    others: std::ops::Range<usize>,
    first: &TestEvent,
    later: &TestEvent,
) -> (CoroutineWorker, Vec<TaskId>) {
    let mut worker = CoroutineWorker::with_stacks(1, 10);
    worker.hold(0, first);
    let ids: Vec<_> = others.map(|number| worker.hold(number, later)).collect();
    for id in &ids {
        assert_eq!(worker.tasks.poll(*id), Polled::Pending);
    }
    assert_eq!(worker.stacks.waiting(), ids.len());
    (worker, ids)
}

#[test]
fn a_woken_coroutine_gets_its_stack_before_newcomers() {
    let (first, later) = (TestEvent::default(), TestEvent::default());
    let (mut worker, _) = queue_for_one_stack(1..2, &first, &later);
    first.happen();
    worker.turn();
    worker.hold(2, &later);
    worker.assert_queue(0, 2, &[0]);
    worker.turn();
    worker.assert_queue(1, 1, &[0, 1]);
}

#[test]
fn a_cancelled_coroutine_wakes_the_next() {
    let (first, later) = (TestEvent::default(), TestEvent::default());
    let (mut worker, waiting) = queue_for_one_stack(1..5, &first, &later);
    worker.tasks.cancel(waiting[1]);
    assert_eq!(worker.stacks.waiting(), 3, "it leaves the queue");
    first.happen();
    worker.turn();
    worker.tasks.cancel(waiting[0]);
    worker.turn();
    worker.assert_queue(1, 1, &[0, 3]);
}

#[test]
fn a_bounded_number_of_stacks_is_kept() {
    let (mut worker, event) = (CoroutineWorker::with_stacks(10, 3), TestEvent::default());
    for number in 0..8 {
        worker.hold(number, &event);
    }
    event.happen();
    worker.turn();
    worker.assert_left(0, 0, 3);
    worker.hold(8, &TestEvent::default());
    worker.assert_left(1, 1, 2);
}

#[test]
fn trimming_frees_the_memory_of_unused_stacks_only() {
    let (mut worker, event) = (CoroutineWorker::with_stacks(10, 10), TestEvent::default());
    let later = TestEvent::default();
    worker.hold(0, &later);
    for number in 1..5 {
        worker.hold(number, &event);
    }
    event.happen();
    worker.turn();
    worker.assert_left(1, 1, 4);
    worker.stacks.trim();
    worker.assert_left(1, 1, 0);
    worker.hold(5, &later);
    later.happen();
    worker.turn();
    worker.assert_left(0, 0, 2);
    worker.stacks.trim();
    worker.assert_left(0, 0, 0);
    worker.hold(6, &TestEvent::default());
    worker.assert_queue(1, 0, &[0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn trimming_keeps_the_stacks_of_woken_coroutines() {
    let (first, later) = (TestEvent::default(), TestEvent::default());
    let (mut worker, _) = queue_for_one_stack(1..2, &first, &later);
    first.happen();
    worker.turn();
    worker.stacks.trim();
    worker.assert_left(1, 0, 1);
    worker.turn();
    worker.assert_queue(1, 0, &[0, 1]);
}

#[test]
fn there_is_at_least_one_stack_of_the_smallest_size() {
    let mut worker = CoroutineWorker::with(StackOptions { stack_bytes: 0, spare_max: 0, stacks_max: 0 });
    assert_eq!(worker.stacks.stack_bytes(), STACK_BYTES_MIN);
    let id = worker.spawn(|_| assert_eq!(format!("{:?}", [1, 2]), "[1, 2]"));
    assert_eq!(worker.tasks.poll(id), Polled::Ready);
    worker.assert_left(0, 0, 0);
}

#[test]
#[should_panic(expected = "no memory for the stack of coroutine test: ")]
fn a_stack_that_is_too_large_fails_at_the_first_poll() {
    let options = StackOptions { stack_bytes: usize::MAX, ..StackOptions::default() };
    let mut worker = CoroutineWorker::with(options);
    let id = worker.spawn(|_| ());
    worker.tasks.poll(id);
}
