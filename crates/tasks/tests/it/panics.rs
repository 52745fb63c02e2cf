//! Futures that panic while they are polled or dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shearwater_tasks::Polled;

use crate::helpers::{Drops, Event, spawn, tasks, words};

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_while_polled_comes_out_and_leaves_the_slot_free() {
    let (mut tasks, drops, event) = (tasks(), Drops::default(), Event::default());
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
    assert_eq!(words(&*panic), "on purpose");
    assert_eq!((drops.count(), tasks.len()), (1, 0));
    assert_eq!((tasks.poll(id), tasks.tag(id)), (Polled::Gone, None));
    let next = spawn(&mut tasks, event.wait());
    assert_eq!(tasks.poll(next), Polled::Ready, "the slot is used again");
}

#[test]
fn a_panic_while_dropped_comes_out_too() {
    let mut tasks = tasks();
    let id = spawn(&mut tasks, async {
        let _grenade = Grenade;
        std::future::pending::<()>().await;
    });
    tasks.poll(id);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.cancel(id))).unwrap_err();
    assert_eq!((words(&*panic), tasks.len()), ("dropped", 0));

    let held = Grenade;
    let id = spawn(&mut tasks, async move { held_until_the_end(&held) });
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!((words(&*panic), tasks.len()), ("dropped", 0), "at its end");
}

fn held_until_the_end(_: &Grenade) {}

#[test]
fn at_the_end_all_are_dropped_and_the_first_panic_comes_out() {
    let (mut tasks, drops) = (tasks(), Drops::default());
    for grenade in [false, true, true, false] {
        let kept = drops.one();
        let id = spawn(&mut tasks, async move {
            let _kept = kept;
            let _grenade = if grenade { Some(Grenade) } else { None };
            std::future::pending::<()>().await;
        });
        assert_eq!(tasks.poll(id), Polled::Pending);
    }
    let panic = catch_unwind(AssertUnwindSafe(|| drop(tasks))).unwrap_err();
    assert_eq!((words(&*panic), drops.count()), ("dropped", 4));
}

#[test]
fn a_future_that_panics_twice_aborts_nothing() {
    struct Twice;
    impl Future for Twice {
        type Output = ();
        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
            panic!("polled");
        }
    }
    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let mut tasks = tasks();
    let id = spawn(&mut tasks, Twice);
    let panic = catch_unwind(AssertUnwindSafe(|| tasks.poll(id))).unwrap_err();
    assert_eq!((words(&*panic), tasks.len()), ("polled", 0), "the first one counts");
}
