//! Wakes by the worker's own thread and by others: when a task is ready, the effect of an old waker; none is lost,
//! and other threads signal the worker once.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};

use shearwater_tasks::{Options, Polled, Tasks};

use crate::{TestEvent, spawn, tasks, turn};

/// Wakes made by each thread.
const WAKES: usize = if cfg!(miri) { 20 } else { 2000 };
const THREADS: usize = 3;

/// An event counter, like a driver's.
#[derive(Default)]
struct EventCounter {
    count: Mutex<usize>,
    changed: Condvar,
}

impl EventCounter {
    fn add(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_one();
    }

    /// Waits for an event, and takes all.
    fn wait(&self) {
        let mut count = self.changed.wait_while(self.count.lock().unwrap(), |count| *count == 0).unwrap();
        *count = 0;
    }
}

/// Returns tasks, and the signals that their worker waits for.
fn signalled_tasks() -> (Tasks, Arc<EventCounter>) {
    let signals = Arc::new(EventCounter::default());
    let added = Arc::clone(&signals);
    (Tasks::new(Options::default(), move || added.add()), signals)
}

/// Returns tasks, and the number of their signals.
fn counted_tasks() -> (Tasks, Arc<AtomicUsize>) {
    let signals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&signals);
    let signal = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (Tasks::new(Options::default(), signal), signals)
}

/// Spawns a task that ends when `count` has reached `goal`; returns its waker. It reads the count without
/// ordering.
fn counter(tasks: &mut Tasks, count: &Arc<AtomicUsize>, goal: usize) -> Waker {
    let given = Rc::new(RefCell::new(None));
    let (giving, count) = (Rc::clone(&given), Arc::clone(count));
    let id = spawn(
        tasks,
        poll_fn(move |context| {
            giving.borrow_mut().get_or_insert_with(|| context.waker().clone());
            if count.load(Ordering::Relaxed) >= goal { Poll::Ready(()) } else { Poll::Pending }
        }),
    );
    assert_eq!(tasks.poll(id), Polled::Pending);
    given.take().expect("it was polled")
}

/// Runs a worker that waits for signals only. A lost signal or wake would block it for ever.
fn run(tasks: &mut Tasks, signals: &EventCounter) {
    while !tasks.is_empty() {
        signals.wait();
        while !turn(tasks).is_empty() {}
    }
}

fn join_all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_task_that_is_woken_twice_is_ready_once() {
    let (mut tasks, event) = (tasks(), TestEvent::default());
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
fn a_task_that_wakes_itself_is_ready_in_the_next_turn() {
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
fn a_wake_between_next_and_poll_is_not_lost() {
    let (mut tasks, event) = (tasks(), TestEvent::default());
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
fn a_task_polled_out_of_turn_is_not_polled_again_without_a_wake() {
    let (mut tasks, event) = (tasks(), TestEvent::default());
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
fn an_old_waker_wakes_the_next_task_of_the_slot_spuriously() {
    let (mut tasks, old, new) = (tasks(), TestEvent::default(), TestEvent::default());
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
fn a_cancelled_predecessor_costs_no_wake() {
    for step in 0..3 {
        let (mut tasks, old, new) = (tasks(), TestEvent::default(), TestEvent::default());
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

#[test]
fn no_wake_by_another_thread_is_lost() {
    let (mut tasks, signals) = signalled_tasks();
    let count = Arc::new(AtomicUsize::new(0));
    let wakers: Vec<_> = (0..2).map(|_| counter(&mut tasks, &count, THREADS * WAKES)).collect();
    let count_and_wake = || {
        let (wakers, count) = (wakers.clone(), Arc::clone(&count));
        thread::spawn(move || {
            for _ in 0..WAKES {
                count.fetch_add(1, Ordering::Relaxed);
                wakers.iter().for_each(Waker::wake_by_ref);
            }
        })
    };
    let threads = (0..THREADS).map(|_| count_and_wake()).collect();
    run(&mut tasks, &signals);
    join_all(threads);
    assert_eq!(count.load(Ordering::Relaxed), THREADS * WAKES);
}

#[test]
fn a_poll_sees_what_was_written_before_the_wake() {
    let (mut tasks, signals) = signalled_tasks();
    let counts: Vec<_> = (0..10).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let mut write_and_wake = |count: &Arc<AtomicUsize>| {
        let (waker, count) = (counter(&mut tasks, count, 1), Arc::clone(count));
        thread::spawn(move || {
            count.store(1, Ordering::Relaxed);
            waker.wake();
        })
    };
    let threads = counts.iter().map(&mut write_and_wake).collect();
    while !tasks.is_empty() {
        signals.wait();
        let polled = turn(&mut tasks);
        assert!(polled.iter().all(|(_, polled)| *polled == Polled::Ready), "woken, and it was not there yet");
    }
    join_all(threads);
}

#[test]
fn other_threads_signal_once_until_the_worker_collects() {
    let (mut tasks, signals) = counted_tasks();
    let count = Arc::new(AtomicUsize::new(0));
    let wakers: Vec<_> = (0..5).map(|_| counter(&mut tasks, &count, 1)).collect();
    let wake_all_elsewhere = || {
        let wakers = wakers.clone();
        thread::spawn(move || wakers.into_iter().for_each(Waker::wake)).join().unwrap();
    };
    wake_all_elsewhere();
    assert_eq!(signals.load(Ordering::Relaxed), 1);
    assert_eq!(turn(&mut tasks).len(), 5);

    wakers.iter().for_each(Waker::wake_by_ref);
    assert_eq!(signals.load(Ordering::Relaxed), 1, "the worker knows what it does itself");
    assert_eq!(turn(&mut tasks).len(), 5);

    wakers[0].wake_by_ref();
    wake_all_elsewhere();
    assert_eq!(signals.load(Ordering::Relaxed), 2, "also where the worker has woken one itself");
    count.store(1, Ordering::Relaxed);
    assert_eq!(turn(&mut tasks).len(), 5);
    assert!(tasks.is_empty());
}

#[test]
fn wakers_outlive_their_tasks_and_their_worker() {
    let (mut tasks, signals) = counted_tasks();
    let waker = counter(&mut tasks, &Arc::default(), 1);
    drop(tasks);
    let wake = move || {
        waker.wake_by_ref();
        waker.wake();
    };
    thread::spawn(wake).join().unwrap();
    assert_eq!(signals.load(Ordering::Relaxed), 0, "nobody is there to be told");
    assert_eq!(Arc::strong_count(&signals), 1, "nothing is left of the worker");
}

/// A waker that counts.
#[derive(Default)]
struct Outer(AtomicUsize);

impl std::task::Wake for Outer {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn wakes_of_a_sleeping_worker_reach_its_event_loop_once() {
    let (mut tasks, signals) = counted_tasks();
    let outer = Arc::<Outer>::default();
    let waker = Waker::from(Arc::clone(&outer));
    let count = Arc::new(AtomicUsize::new(0));
    let [first, second] = [1, 1].map(|goal| counter(&mut tasks, &count, goal));
    first.wake_by_ref();
    assert_eq!(outer.0.load(Ordering::Relaxed), 0, "it doesn't sleep");
    let woken = |outer: &Outer| outer.0.swap(0, Ordering::Relaxed);
    for by_other in [false, true, false] {
        assert!(turn(&mut tasks).len() <= 2);
        tasks.sleep(&waker);
        let [one, other] = [first.clone(), second.clone()];
        let wake = move || {
            one.wake();
            other.wake();
        };
        if by_other {
            thread::spawn(wake).join().expect("it wakes");
        } else {
            wake();
        }
        assert_eq!(woken(&outer), 1, "by another thread: {by_other}");
        assert_eq!(turn(&mut tasks).len(), 2, "both are ready");
        first.wake_by_ref();
        assert_eq!(woken(&outer), 0, "awake again");
    }
    assert_eq!(signals.load(Ordering::Relaxed), 0, "the event loop takes the signal's place");
}
