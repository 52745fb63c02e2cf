//! Tasks on one thread: spawned, polled, ended, cancelled; and futures that panic.

use std::cell::Cell;
use std::future::{pending, ready};
use std::marker::PhantomPinned;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use shearwater_tasks::{Options, Order, Polled, Tasks, yield_now};

use crate::{Drops, TestEvent, message, spawn, tasks, turn};

#[test]
fn a_ready_future_ends_in_its_first_poll() {
    let mut tasks = tasks();
    let id = spawn(&mut tasks, ready(()));
    assert_eq!((tasks.len(), tasks.ready()), (1, 0), "made, and not ready: the caller polls it first");
    assert_eq!(tasks.poll(id), Polled::Ready);
    assert_eq!(tasks.poll(id), Polled::Gone);
    assert!(tasks.is_empty());
}

#[test]
fn a_pending_future_is_polled_after_a_wake() {
    let (mut tasks, event, drops) = (tasks(), TestEvent::default(), Drops::default());
    let (wait, kept) = (event.wait(), drops.one());
    let id = spawn(&mut tasks, async move {
        let _kept = kept;
        wait.await;
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    assert!(turn(&mut tasks).is_empty(), "nobody woke it");
    event.wake();
    assert_eq!(turn(&mut tasks), [(id, Polled::Pending)], "woken for nothing");
    event.happen();
    assert_eq!(drops.count(), 0);
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
    assert_eq!((drops.count(), tasks.len()), (1, 0), "dropped in place, its slot free");
    assert_eq!(event.polls(), 3);
}

#[test]
fn yielding_waits_for_the_next_turn() {
    let mut tasks = tasks();
    let id = spawn(&mut tasks, async {
        yield_now().await;
        yield_now().await;
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    assert_eq!(turn(&mut tasks), [(id, Polled::Pending)]);
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn tasks_have_the_tags_of_their_callers() {
    let mut tasks = tasks();
    let Ok(one) = tasks.spawn(17, pending()) else { panic!("the queue has room") };
    let Ok(two) = tasks.spawn(u64::MAX, pending()) else { panic!("the queue has room") };
    assert_eq!((tasks.tag(one), tasks.tag(two)), (Some(17), Some(u64::MAX)));
    tasks.set_tag(two, 18);
    tasks.cancel(one);
    tasks.set_tag(one, 19);
    assert_eq!((tasks.tag(one), tasks.tag(two)), (None, Some(18)));
}

#[test]
fn returns_a_future_beyond_the_limit() {
    let mut tasks = Tasks::new(Options { tasks_max: 2, ..Options::default() }, || ());
    let drops = Drops::default();
    let first = spawn(&mut tasks, pending());
    spawn(&mut tasks, pending());
    let kept = drops.one();
    let third = tasks.spawn(0, async move { drop(kept) });
    let Err(third) = third else { panic!("there are too many") };
    assert_eq!((drops.count(), tasks.len()), (0, 2), "it is whole");
    tasks.cancel(first);
    let id = spawn(&mut tasks, third);
    assert_eq!(tasks.poll(id), Polled::Ready);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_cancelled_future_is_dropped_and_never_polled() {
    let (mut tasks, event, drops) = (tasks(), TestEvent::default(), Drops::default());
    let (wait, kept) = (event.wait(), drops.one());
    let id = spawn(&mut tasks, async move {
        wait.await;
        drop(kept);
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    event.wake();
    tasks.collect();
    assert_eq!(tasks.ready(), 1);
    tasks.cancel(id);
    assert_eq!((drops.count(), tasks.len()), (1, 0));
    assert_eq!((tasks.next(), tasks.poll(id)), (None, Polled::Gone));
    tasks.cancel(id);
    assert_eq!(drops.count(), 1, "once more is nothing");
}

#[test]
fn dropping_the_tasks_drops_their_futures() {
    let (mut tasks, drops, event) = (tasks(), Drops::default(), TestEvent::default());
    for _ in 0..3 {
        let (kept, wait) = (drops.one(), event.wait());
        let id = spawn(&mut tasks, async move {
            wait.await;
            drop(kept);
        });
        tasks.poll(id);
    }
    drop(tasks);
    assert_eq!(drops.count(), 3);
    event.happen(); // the wakers are there still, and wake nobody
}

#[test]
fn a_future_never_moves() {
    struct AtHome {
        home: Rc<Cell<usize>>,
        event: TestEvent,
        _pinned: PhantomPinned,
    }
    impl Future for AtHome {
        type Output = ();
        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            let here = std::ptr::from_ref(&*self).addr();
            assert!([0, here].contains(&self.home.replace(here)), "it was moved");
            Pin::new(&mut self.event.wait()).poll(context)
        }
    }
    let (mut tasks, event) = (tasks(), TestEvent::default());
    let spawned = (0..200).map(|_| {
        let future = AtHome { home: Rc::default(), event: event.clone(), _pinned: PhantomPinned };
        let id = spawn(&mut tasks, future);
        assert_eq!(tasks.poll(id), Polled::Pending);
        id
    });
    let spawned: Vec<_> = spawned.collect();
    event.wake();
    assert_eq!(turn(&mut tasks).len(), spawned.len());
    event.happen();
    assert!(turn(&mut tasks).iter().all(|(_, polled)| *polled == Polled::Ready));
}

#[test]
fn has_room_for_futures_of_any_size_and_alignment() {
    #[repr(align(256))]
    struct Wide(u8);
    async fn holding<T>(mut value: T, event: TestEvent, check: impl Fn(&mut T)) {
        check(&mut value);
        event.wait().await;
        check(&mut value);
    }
    let (mut tasks, event) = (tasks(), TestEvent::default());
    for _ in 0..2 {
        let ids = [
            spawn(&mut tasks, ready(())),
            spawn(&mut tasks, holding([7_u8; 100], event.clone(), |held| assert_eq!(held, &mut [7; 100]))),
            spawn(&mut tasks, holding([8_u8; 5000], event.clone(), |held| assert_eq!(held, &mut [8; 5000]))),
            spawn(
                &mut tasks,
                holding([9_u8; 100_000], event.clone(), |held| assert_eq!(held, &mut [9; 100_000])),
            ),
            spawn(
                &mut tasks,
                holding(Wide(3), event.clone(), |held| {
                    assert_eq!((held.0, std::ptr::from_ref(held).addr() % 256), (3, 0));
                }),
            ),
        ];
        assert_eq!(
            ids.map(|id| tasks.poll(id)),
            [Polled::Ready, Polled::Pending, Polled::Pending, Polled::Pending, Polled::Pending]
        );
        event.wake();
        assert_eq!(turn(&mut tasks).len(), 4);
        for id in ids {
            tasks.cancel(id);
        }
        assert!(tasks.is_empty());
    }
}

#[test]
fn polls_in_the_order_of_the_options() {
    let first_polled = |order, lifo_run_max| {
        let mut tasks = Tasks::new(Options { order, lifo_run_max, ..Options::default() }, || ());
        let event = TestEvent::default();
        let ids: Vec<_> = (0..6).map(|_| spawn(&mut tasks, event.wait())).collect();
        for id in &ids {
            tasks.poll(*id);
        }
        event.wake();
        let polled = turn(&mut tasks);
        polled.iter().map(|(id, _)| ids.iter().position(|known| known == id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(first_polled(Order::Fifo, 3), [0, 1, 2, 3, 4, 5]);
    assert_eq!(first_polled(Order::Lifo, 2), [5, 4, 0, 3, 2, 1]);
}

#[test]
fn a_future_that_is_ready_when_polled_now_needs_no_task() {
    let mut tasks = tasks();
    let mut future = ready(17);
    assert_eq!(tasks.poll_now(|cx| Pin::new(&mut future).poll(cx)), Some(Poll::Ready(17)));
    assert!(tasks.is_empty() && turn(&mut tasks).is_empty());
}

#[test]
fn a_wake_after_poll_now_counts() {
    for woken_before in [false, true] {
        let (mut tasks, event) = (tasks(), TestEvent::default());
        let mut wait = Box::pin(event.wait());
        assert_eq!(tasks.poll_now(|cx| wait.as_mut().poll(cx)), Some(Poll::Pending));
        if woken_before {
            event.wake();
        }
        let id = spawn(&mut tasks, wait);
        if !woken_before {
            assert!(turn(&mut tasks).is_empty(), "nobody woke it");
            event.wake();
        }
        assert_eq!(turn(&mut tasks), [(id, Polled::Pending)]);
        event.happen();
        assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
        assert_eq!(event.polls(), 3);
    }
}

#[test]
fn a_wake_after_poll_now_without_a_task_harms_no_later_one() {
    let (mut tasks, event) = (tasks(), TestEvent::default());
    for _ in 0..3 {
        let mut kept = None;
        tasks.poll_now(|cx| kept = Some(cx.waker().clone())).expect("the queue has room");
        kept.expect("it was checked").wake();
        assert!(turn(&mut tasks).is_empty());
    }
    let mut wait = Box::pin(event.wait());
    assert_eq!(tasks.poll_now(|cx| wait.as_mut().poll(cx)), Some(Poll::Pending));
    let id = spawn(&mut tasks, wait);
    assert!(turn(&mut tasks).is_empty(), "that was another's");
    event.happen();
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn polls_nothing_now_without_room_for_a_task() {
    let mut tasks = Tasks::new(Options { tasks_max: 1, ..Options::default() }, || ());
    let only = spawn(&mut tasks, pending());
    assert_eq!(tasks.poll_now(|_| panic!("there is no room")), None::<()>);
    tasks.cancel(only);
    assert_eq!(tasks.poll_now(|_| ()), Some(()));
}

/// Panics when it is dropped.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_in_a_poll_comes_out_and_frees_the_slot() {
    let (mut tasks, drops, event) = (tasks(), Drops::default(), TestEvent::default());
    let (kept, wait) = (drops.one(), event.wait());
    let id = spawn(&mut tasks, async move {
        let _kept = kept;
        wait.await;
        panic!("on purpose");
    });
    assert_eq!(tasks.poll(id), Polled::Pending);
    event.happen();
    tasks.collect();
    assert_eq!(tasks.next(), Some(id));
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!(message(&*panic), "on purpose");
    assert_eq!((drops.count(), tasks.len()), (1, 0));
    assert_eq!((tasks.poll(id), tasks.tag(id)), (Polled::Gone, None));
    let next = spawn(&mut tasks, event.wait());
    assert_eq!(tasks.poll(next), Polled::Ready, "the slot is used again");
}

#[test]
fn a_panic_in_a_drop_comes_out() {
    let mut tasks = tasks();
    let id = spawn(&mut tasks, async {
        let _panics = PanicsInDrop;
        pending::<()>().await;
    });
    tasks.poll(id);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.cancel(id))).unwrap_err();
    assert_eq!((message(&*panic), tasks.len()), ("dropped", 0));

    let held = PanicsInDrop;
    let id = spawn(&mut tasks, async move { held_until_the_end(&held) });
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!((message(&*panic), tasks.len()), ("dropped", 0), "at its end");
}

fn held_until_the_end(_: &PanicsInDrop) {}

#[test]
fn dropping_the_tasks_drops_all_and_passes_the_first_panic_on() {
    let (mut tasks, drops) = (tasks(), Drops::default());
    for panics in [false, true, true, false] {
        let kept = drops.one();
        let id = spawn(&mut tasks, async move {
            let _kept = kept;
            let _panics = if panics { Some(PanicsInDrop) } else { None };
            pending::<()>().await;
        });
        assert_eq!(tasks.poll(id), Polled::Pending);
    }
    let panic = catch_unwind(AssertUnwindSafe(|| drop(tasks))).unwrap_err();
    assert_eq!((message(&*panic), drops.count()), ("dropped", 4));
}

#[test]
fn a_future_that_panics_twice_aborts_nothing() {
    struct PanicsTwice;
    impl Future for PanicsTwice {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            panic!("polled");
        }
    }
    impl Drop for PanicsTwice {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let mut tasks = tasks();
    let id = spawn(&mut tasks, PanicsTwice);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!((message(&*panic), tasks.len()), ("polled", 0), "the first one counts");
}

#[test]
fn a_task_is_woken_before_its_first_poll() {
    let mut tasks = tasks();
    let mut kept = None;
    let former = spawn(&mut tasks, std::future::poll_fn(|_| Poll::<()>::Pending));
    tasks.cancel(former);
    tasks.poll_now(|cx| kept = Some(cx.waker().clone())).expect("the queue has room");
    for _ in 0..2 {
        // Late, for a task that has ended.
        kept.take().into_iter().for_each(|waker: std::task::Waker| waker.wake());
        tasks.collect();
        let id = spawn(&mut tasks, ready(()));
        tasks.wake(id);
        assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
        tasks.wake(id);
        assert!(turn(&mut tasks).is_empty(), "it has ended");
    }
}
