//! Coroutines: they wait, end, panic and are cancelled, as any task.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shearwater_tasks::limits::BODY_BYTES_MAX;
use shearwater_tasks::{Coroutine, Polled, StackOptions, Stacks, Suspend, TaskId, Tasks, Timers, yield_now};

use crate::helpers::{Drops, Event, spawn, tasks, turn, words};

fn stacks() -> Rc<Stacks> {
    Stacks::new(StackOptions::default()).expect("the system has memory")
}

/// Makes a task of a body.
fn start(tasks: &mut Tasks, stacks: &Rc<Stacks>, body: impl FnOnce(&Suspend<'_>) + 'static) -> TaskId {
    spawn(tasks, Coroutine::new(stacks, "test".into(), body))
}

#[test]
fn who_never_waits_is_over_at_the_first_poll() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let done = Rc::new(Cell::new(false));
    let told = Rc::clone(&done);
    let id = start(&mut tasks, &stacks, move |suspend| {
        assert_eq!(suspend.wait(ready(7)), 7);
        told.set(true);
    });
    assert_eq!((stacks.lent(), done.get()), (0, false), "a stack is taken at the first poll");
    assert_eq!(tasks.poll(id), Polled::Ready);
    assert_eq!((stacks.lent(), stacks.spare(), done.get()), (0, 1, true));
}

#[test]
fn who_waits_goes_on_where_it_was_with_all_that_it_had() {
    let (mut tasks, stacks, timers) = (tasks(), stacks(), Timers::new());
    let (steps, clock) = (Rc::new(RefCell::new(Vec::new())), Rc::clone(&timers));
    let told = Rc::clone(&steps);
    let id = start(&mut tasks, &stacks, move |suspend| {
        let mut local = [0_u64; 100];
        for (number, place) in local.iter_mut().enumerate() {
            *place = number as u64;
            if number % 40 == 0 {
                suspend.wait(clock.sleep(Duration::from_millis(10)));
                told.borrow_mut().push((number, clock.now_ms()));
            }
        }
        assert_eq!(local.iter().sum::<u64>(), 99 * 100 / 2);
    });
    assert_eq!((tasks.poll(id), stacks.lent()), (Polled::Pending, 1));
    let mut polled = Vec::new();
    for now_ms in 0..40 {
        timers.set_now_ms(now_ms);
        timers.expire();
        polled.extend(turn(&mut tasks).into_iter().map(|(_, polled)| polled));
    }
    assert_eq!(*steps.borrow(), [(0, 10), (40, 20), (80, 30)]);
    assert_eq!(polled, [Polled::Pending, Polled::Pending, Polled::Ready]);
    assert_eq!(stacks.lent(), 0);
}

#[test]
fn many_take_turns() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let count = Rc::new(Cell::new(0));
    for _ in 0..50 {
        let count = Rc::clone(&count);
        let id = start(&mut tasks, &stacks, move |suspend| {
            for _ in 0..20 {
                suspend.wait(yield_now());
                count.set(count.get() + 1);
            }
        });
        tasks.poll(id);
    }
    assert_eq!(stacks.lent(), 50);
    for _ in 0..20 {
        assert_eq!(turn(&mut tasks).len(), 50);
    }
    assert_eq!((count.get(), tasks.len(), stacks.lent()), (1000, 0, 0));
}

#[test]
fn a_panic_comes_out_of_the_poll_and_the_stack_goes_back() {
    let (mut tasks, stacks, drops) = (tasks(), stacks(), Drops::default());
    let kept = drops.one();
    let id = start(&mut tasks, &stacks, move |suspend| {
        let _kept = kept;
        suspend.wait(yield_now());
        panic!("on purpose");
    });
    tasks.poll(id);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!(words(&*panic), "on purpose");
    assert_eq!((drops.count(), stacks.lent(), stacks.spare(), tasks.len()), (1, 0, 1, 0));
}

#[test]
fn a_panic_that_the_body_catches_is_its_own() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let id = start(&mut tasks, &stacks, |suspend| {
        let polls = || suspend.wait(poll_fn(|_| -> Poll<()> { panic!("in a future") }));
        let caught = catch_unwind(AssertUnwindSafe(polls)).unwrap_err();
        assert_eq!(words(&*caught), "in a future");
        suspend.wait(yield_now());
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn the_cancelled_are_unwound_and_what_they_had_is_dropped() {
    let (mut tasks, stacks, drops, event) = (tasks(), stacks(), Drops::default(), Event::default());
    let (one, two, three, wait) = (drops.one(), drops.one(), drops.one(), event.wait());
    let reached = Rc::new(Cell::new(false));
    let told = Rc::clone(&reached);
    let id = start(&mut tasks, &stacks, move |suspend| {
        let _one = one;
        let inner = move |_two| {
            suspend.wait(async move {
                let _three = three;
                wait.await;
            });
        };
        inner(two);
        told.set(true);
    });
    assert_eq!((tasks.poll(id), drops.count()), (Polled::Pending, 0));
    tasks.cancel(id);
    assert_eq!((drops.count(), reached.get()), (3, false));
    assert_eq!((stacks.lent(), stacks.spare(), tasks.len()), (0, 1, 0));
    event.happen();
    assert!(turn(&mut tasks).is_empty());
}

#[test]
fn who_was_never_polled_is_dropped_without_a_stack() {
    let (mut tasks, stacks, drops) = (tasks(), stacks(), Drops::default());
    let kept = drops.one();
    let id = start(&mut tasks, &stacks, move |_| drop(kept));
    tasks.cancel(id);
    assert_eq!((drops.count(), stacks.lent(), stacks.spare()), (1, 0, 0));
}

#[test]
fn who_catches_its_own_end_is_unwound_again() {
    let (mut tasks, stacks, drops) = (tasks(), stacks(), Drops::default());
    let (kept, reached) = (drops.one(), Rc::new(Cell::new(0)));
    let told = Rc::clone(&reached);
    let id = start(&mut tasks, &stacks, move |suspend| {
        let _kept = kept;
        let caught = catch_unwind(AssertUnwindSafe(|| suspend.wait(pending::<()>())));
        told.set(1);
        assert!(caught.is_err());
        suspend.wait(ready(()));
        told.set(2);
    });
    tasks.poll(id);
    tasks.cancel(id);
    assert_eq!((reached.get(), drops.count(), stacks.lent()), (1, 1, 0), "it does not wait again");
}

#[test]
fn who_panics_while_it_is_cancelled_tells_it() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            // During unwinding it can't panic, which would abort. After the end is caught it can.
            assert!(std::thread::panicking());
        }
    }
    let (mut tasks, stacks) = (tasks(), stacks());
    let id = start(&mut tasks, &stacks, |suspend| {
        let end = catch_unwind(AssertUnwindSafe(|| {
            let _grenade = Grenade;
            suspend.wait(pending::<()>());
        }));
        if end.is_err() {
            panic!("at its end");
        }
    });
    tasks.poll(id);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.cancel(id))).unwrap_err();
    assert_eq!((words(&*panic), tasks.len(), stacks.lent(), stacks.spare()), ("at its end", 0, 0, 1));
}

#[test]
fn destructors_may_ask_for_what_is_ready_while_they_unwind() {
    struct Asks<'a>(&'a Suspend<'a>, Rc<Cell<u32>>);
    impl Drop for Asks<'_> {
        fn drop(&mut self) {
            self.1.set(self.0.wait(ready(7)));
        }
    }
    let (mut tasks, stacks) = (tasks(), stacks());
    for cancelled in [true, false] {
        let response = Rc::new(Cell::new(0));
        let told = Rc::clone(&response);
        let id = start(&mut tasks, &stacks, move |suspend| {
            let _asks = Asks(suspend, told);
            suspend.wait(yield_now());
            panic!("on purpose");
        });
        tasks.poll(id);
        if cancelled {
            tasks.cancel(id);
        } else {
            assert!(catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).is_err());
        }
        assert_eq!((response.get(), tasks.len()), (7, 0));
    }
}

#[test]
fn the_end_of_all_tasks_unwinds_their_stacks() {
    let (stacks, drops) = (stacks(), Drops::default());
    let mut tasks = tasks();
    for _ in 0..3 {
        let kept = drops.one();
        let id = start(&mut tasks, &stacks, move |suspend| {
            let _kept = kept;
            suspend.wait(pending::<()>());
        });
        tasks.poll(id);
    }
    assert_eq!(stacks.lent(), 3);
    drop(tasks);
    assert_eq!((drops.count(), stacks.lent()), (3, 0));
}

#[test]
fn a_large_body_gets_there_too() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let large = [5_u8; 4 * BODY_BYTES_MAX];
    let id = start(&mut tasks, &stacks, move |suspend| {
        suspend.wait(yield_now());
        assert!(large.iter().all(|byte| *byte == 5));
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn a_body_may_wait_within_a_future_that_it_waits_for() {
    let (mut tasks, stacks, event) = (tasks(), stacks(), Event::default());
    let (inner, outer) = (event.wait(), event.wait());
    let id = start(&mut tasks, &stacks, move |suspend| {
        let mut inner = Some(inner);
        let mut outer = pin!(outer);
        suspend.wait(poll_fn(|context| {
            if let Some(inner) = inner.take() {
                suspend.wait(inner);
            }
            outer.as_mut().poll(context)
        }));
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    event.happen();
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

/// A waker that is distinct from others.
struct Own;

impl Wake for Own {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn what_waits_within_learns_the_waker_of_the_latest_poll() {
    let stacks = stacks();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&seen);
    let mut coroutine = pin!(Coroutine::new(&stacks, "test".into(), move |suspend: &Suspend<'_>| {
        let mut inner = Some(yield_now());
        suspend.wait(poll_fn(|context| {
            told.borrow_mut().push(context.waker().clone());
            if let Some(inner) = inner.take() {
                suspend.wait(inner);
            }
            Poll::<()>::Pending
        }));
    }));
    let wakers: Vec<Waker> = (0..3).map(|_| Waker::from(Arc::new(Own))).collect();
    let mut poll = |waker: &Waker| coroutine.as_mut().poll(&mut Context::from_waker(waker));
    assert!(poll(&wakers[0]).is_pending());
    assert!(poll(&wakers[1]).is_pending());
    assert!(seen.borrow().last().unwrap().will_wake(&wakers[1]), "not that of the poll in which it began");
    assert!(poll(&wakers[2]).is_pending());
    assert!(seen.borrow().last().unwrap().will_wake(&wakers[2]));
}

#[test]
fn a_coroutine_may_wait_for_another() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let (drops, their) = (Drops::default(), Rc::clone(&stacks));
    let (one, two) = (drops.one(), drops.one());
    let id = start(&mut tasks, &stacks, move |suspend| {
        let _one = one;
        let inner = Coroutine::new(&their, "inner".into(), move |suspend: &Suspend<'_>| {
            let _two = two;
            suspend.wait(yield_now());
            suspend.wait(pending::<()>());
        });
        suspend.wait(inner);
    });
    assert_eq!((tasks.poll(id), stacks.lent()), (Polled::Pending, 2));
    assert_eq!(turn(&mut tasks), [(id, Polled::Pending)]);
    tasks.cancel(id);
    assert_eq!((drops.count(), stacks.lent()), (2, 0));
}

#[test]
#[should_panic(expected = "coroutine test was polled after its end")]
fn polled_after_its_end_it_panics() {
    let stacks = stacks();
    let mut coroutine = pin!(Coroutine::new(&stacks, "test".into(), |_: &Suspend<'_>| ()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(coroutine.as_mut().poll(&mut context).is_ready());
    let _again = coroutine.as_mut().poll(&mut context);
}

#[test]
fn a_panic_passed_on_is_the_same() {
    let (mut tasks, stacks) = (tasks(), stacks());
    let id = start(&mut tasks, &stacks, |suspend| {
        suspend.wait(yield_now());
        resume_unwind(Box::new("passed on"));
    });
    tasks.poll(id);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!(words(&*panic), "passed on");
}
