//! Wakes by the worker's own thread: when a task is ready, and the effect of an old waker.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use shearwater_tasks::{Options, Polled, Tasks};

use crate::helpers::{Event, spawn, tasks, turn};

#[test]
fn woken_twice_is_ready_once() {
    let (mut tasks, event) = (tasks(), Event::default());
    let id = spawn(&mut tasks, event.wait());
    tasks.poll(id);
    let wakers = event.take_wakers();
    wakers[0].wake_by_ref();
    tasks.collect();
    wakers[0].wake_by_ref();
    tasks.collect();
    assert_eq!(tasks.ready(), 1);
    assert_eq!((tasks.next(), tasks.next()), (Some(id), None));
}

#[test]
fn who_wakes_itself_is_ready_in_the_next_turn() {
    let mut tasks = tasks();
    let polls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&polls);
    let id = spawn(
        &mut tasks,
        poll_fn(move |context| {
            counted.set(counted.get() + 1);
            context.waker().wake_by_ref();
            context.waker().wake_by_ref();
            Poll::Pending
        }),
    );
    tasks.poll(id);
    for turns in 1..4 {
        assert_eq!(turn(&mut tasks), [(id, Polled::Pending)]);
        assert_eq!(polls.get(), turns + 1, "once a turn");
    }
}

#[test]
fn a_wake_between_being_next_and_being_polled_is_not_lost() {
    let (mut tasks, event) = (tasks(), Event::default());
    let id = spawn(&mut tasks, event.wait());
    tasks.poll(id);
    event.take_wakers()[0].wake_by_ref();
    tasks.collect();
    assert_eq!(tasks.next(), Some(id));
    assert_eq!(tasks.poll(id), Polled::Pending);
    event.happen();
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn who_was_polled_out_of_turn_is_not_polled_for_nothing() {
    let (mut tasks, event) = (tasks(), Event::default());
    let id = spawn(&mut tasks, event.wait());
    tasks.poll(id);
    event.wake();
    tasks.collect();
    assert_eq!(
        (tasks.poll(id), event.polls()),
        (Polled::Pending, 2),
        "out of turn, while it is in the queue"
    );
    event.wake();
    tasks.collect();
    assert_eq!(tasks.ready(), 1, "in the queue once");
    assert_eq!(tasks.poll(id), Polled::Pending);
    assert_eq!(tasks.next(), None, "nobody woke it since");
    event.happen();
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
}

#[test]
fn an_old_waker_wakes_the_next_task_of_the_slot_for_nothing() {
    let (mut tasks, old, new) = (tasks(), Event::default(), Event::default());
    let first = spawn(&mut tasks, old.wait());
    tasks.poll(first);
    tasks.cancel(first);
    old.take_wakers().into_iter().for_each(Waker::wake);
    assert!(turn(&mut tasks).is_empty(), "nobody is there");

    let first = spawn(&mut tasks, old.wait());
    tasks.poll(first);
    tasks.cancel(first);
    let second = spawn(&mut tasks, new.wait());
    assert_ne!(first, second);
    tasks.poll(second);
    old.take_wakers().into_iter().for_each(Waker::wake);
    assert_eq!(turn(&mut tasks), [(second, Polled::Pending)], "for nothing");
    assert_eq!(tasks.poll(first), Polled::Gone);
    new.happen();
    assert_eq!(turn(&mut tasks), [(second, Polled::Ready)]);
}

#[test]
fn no_wake_is_lost_to_a_predecessor_that_was_woken_and_gone() {
    for step in 0..3 {
        let (mut tasks, old, new) = (tasks(), Event::default(), Event::default());
        let first = spawn(&mut tasks, old.wait());
        tasks.poll(first);
        old.wake();
        if step > 0 {
            tasks.collect();
        }
        if step > 1 {
            assert_eq!(tasks.next(), Some(first), "taken, and never polled");
        }
        tasks.cancel(first);
        let second = spawn(&mut tasks, new.wait());
        tasks.poll(second);
        new.happen();
        assert_eq!(turn(&mut tasks), [(second, Polled::Ready)], "step {step}");
    }
}

#[test]
fn the_worker_is_not_signalled_by_itself() {
    let signals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&signals);
    let mut tasks = Tasks::new(Options::default(), move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let event = Event::default();
    let id = spawn(&mut tasks, event.wait());
    tasks.poll(id);
    event.happen();
    assert_eq!(turn(&mut tasks), [(id, Polled::Ready)]);
    assert_eq!(signals.load(Ordering::Relaxed), 0);
}

#[test]
fn a_slot_has_one_waker_for_all_its_tasks() {
    let mut tasks = tasks();
    let wakers = Rc::new(Cell::new(Vec::new()));
    for _ in 0..2 {
        let wakers = Rc::clone(&wakers);
        let id = spawn(&mut tasks, async move {
            poll_fn(|context| {
                let mut all: Vec<Waker> = wakers.take();
                all.push(context.waker().clone());
                wakers.set(all);
                Poll::Ready(())
            })
            .await;
            pending::<()>().await;
        });
        tasks.poll(id);
        tasks.cancel(id);
    }
    let wakers = wakers.take();
    assert!(wakers[0].will_wake(&wakers[1]));
}
