//! Sleeps on a clock that the test drives.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use shearwater_tasks::{Polled, Tasks, Timers};

use crate::{spawn, tasks, turn};

/// Advances the time and polls the tasks due.
fn pass(tasks: &mut Tasks, timers: &Timers, ms: u64) -> usize {
    timers.set_now_ms(timers.now_ms() + ms);
    timers.expire();
    turn(tasks).len()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_sleep_ends_at_its_time() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    timers.set_now_ms(1000);
    let sleep = timers.sleep(ms(50));
    assert_eq!((sleep.due_ms(), timers.next_due_ms()), (1050, None), "not polled yet");
    let id = spawn(&mut tasks, sleep);
    assert_eq!((tasks.poll(id), timers.next_due_ms(), timers.len()), (Polled::Pending, Some(1050), 1));
    assert_eq!(pass(&mut tasks, &timers, 49), 0);
    assert_eq!(pass(&mut tasks, &timers, 1), 1);
    assert!(tasks.is_empty() && timers.is_empty());
    assert_eq!(timers.next_due_ms(), None);
}

#[test]
fn sleeps_end_in_the_order_of_their_times() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    let over = Rc::new(RefCell::new(Vec::new()));
    for duration in [30, 10, 20, 10, 500] {
        let (timers, over) = (Rc::clone(&timers), Rc::clone(&over));
        let number = tasks.len();
        let id = spawn(&mut tasks, async move {
            timers.sleep(ms(duration)).await;
            over.borrow_mut().push((duration, number));
        });
        tasks.poll(id);
    }
    assert_eq!(pass(&mut tasks, &timers, 100), 4);
    assert_eq!(*over.borrow(), [(10, 1), (10, 3), (20, 2), (30, 0)]);
    assert_eq!((tasks.len(), timers.next_due_ms()), (1, Some(500)));
}

#[test]
fn no_sleep_ends_at_once_and_parts_of_a_millisecond_are_rounded_up() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    let none = spawn(&mut tasks, timers.sleep(Duration::ZERO));
    assert_eq!(tasks.poll(none), Polled::Ready);
    assert_eq!(timers.sleep(Duration::from_nanos(1)).due_ms(), 1);
    assert_eq!(timers.sleep(Duration::from_micros(2001)).due_ms(), 3);
}

#[test]
fn a_sleep_without_end_never_ends() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    timers.set_now_ms(5);
    let id = spawn(&mut tasks, timers.sleep(Duration::MAX));
    assert_eq!(tasks.poll(id), Polled::Pending);
    timers.set_now_ms(u64::MAX);
    assert_eq!(tasks.poll(id), Polled::Pending);
    timers.expire();
    assert_eq!(tasks.len(), 1);
}

#[test]
fn a_cancelled_sleep_is_removed() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    let ids: Vec<_> = (0..5).map(|_| spawn(&mut tasks, timers.sleep(ms(10)))).collect();
    for id in &ids {
        tasks.poll(*id);
    }
    tasks.cancel(ids[2]);
    tasks.cancel(ids[0]);
    assert_eq!(timers.len(), 3);
    assert_eq!(pass(&mut tasks, &timers, 10), 3);
}

#[test]
fn a_sleep_polled_late_ends_without_its_timer() {
    let (mut tasks, timers) = (tasks(), Timers::new());
    let id = spawn(&mut tasks, timers.sleep(ms(10)));
    tasks.poll(id);
    timers.set_now_ms(10);
    assert_eq!(tasks.poll(id), Polled::Ready, "polled before `expire`");
    assert!(timers.is_empty());
}

#[test]
fn a_waker_may_call_the_timers() {
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};
    /// Wakes nothing; dropped while timers expire.
    struct Quiet;
    impl Wake for Quiet {
        fn wake(self: Arc<Self>) {}
    }
    let timers = Timers::new();
    let waker = Waker::from(Arc::new(Quiet));
    let mut sleeps: Vec<_> = (0..3).map(|_| Box::pin(timers.sleep(ms(1)))).collect();
    for sleep in &mut sleeps {
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "another waker");
    }
    assert_eq!(timers.len(), 3, "one each, with the last waker");
    timers.set_now_ms(1);
    timers.expire();
    assert!(timers.is_empty());
    drop(sleeps);
    assert!(timers.is_empty());
}

#[test]
fn sleeps_beyond_the_limit_are_polled_in_every_turn() {
    let (mut tasks, timers) = (tasks(), Timers::with_max(1));
    for _ in 0..2 {
        let id = spawn(&mut tasks, timers.sleep(ms(3)));
        tasks.poll(id);
    }
    assert_eq!(timers.len(), 1);
    assert_eq!(pass(&mut tasks, &timers, 1), 1, "looked at");
    assert_eq!(pass(&mut tasks, &timers, 1), 1);
    assert_eq!(tasks.len(), 2);
    assert_eq!(pass(&mut tasks, &timers, 1), 2);
    assert!(tasks.is_empty());
}
