//! The pool of stacks: bounds of stacks in use and spare ones, and the order of waiting coroutines.

use std::cell::RefCell;
use std::rc::Rc;

use shearwater_tasks::limits::STACK_BYTES_MIN;
use shearwater_tasks::{Coroutine, Polled, StackOptions, Stacks, Suspend, TaskId, Tasks};

use crate::helpers::{Event, spawn, tasks, turn};

/// Stacks, tasks that hold one until their event, and the order in which they got one.
struct House {
    tasks: Tasks,
    stacks: Rc<Stacks>,
    began: Rc<RefCell<Vec<usize>>>,
}

impl House {
    fn new(stacks_max: usize, spare_max: usize) -> Self {
        let options = StackOptions { stack_bytes: STACK_BYTES_MIN * 4, spare_max, stacks_max };
        let stacks = Stacks::new(options).expect("the system has memory");
        Self { tasks: tasks(), stacks, began: Rc::default() }
    }

    /// Starts a task that holds a stack until the event.
    fn start(&mut self, number: usize, event: &Event) -> TaskId {
        let (began, wait) = (Rc::clone(&self.began), event.wait());
        let body = move |suspend: &Suspend<'_>| {
            began.borrow_mut().push(number);
            suspend.wait(wait);
        };
        let id = spawn(&mut self.tasks, Coroutine::new(&self.stacks, "test".into(), body));
        assert_eq!(self.tasks.poll(id), Polled::Pending);
        id
    }

    fn began(&self) -> Vec<usize> {
        self.began.borrow().clone()
    }
}

#[test]
fn so_many_are_lent_and_the_others_wait_in_the_order_in_which_they_came() {
    let mut house = House::new(2, 10);
    let events: Vec<_> = (0..5).map(|_| Event::default()).collect();
    for (number, event) in events.iter().enumerate() {
        house.start(number, event);
    }
    assert_eq!((house.stacks.lent(), house.stacks.waiting(), house.began()), (2, 3, vec![0, 1]));
    events[1].happen();
    turn(&mut house.tasks);
    assert_eq!((house.stacks.lent(), house.stacks.waiting()), (1, 3), "one was called");
    turn(&mut house.tasks);
    assert_eq!((house.stacks.lent(), house.stacks.waiting(), house.began()), (2, 2, vec![0, 1, 2]));
    for event in &events {
        event.happen();
    }
    while !turn(&mut house.tasks).is_empty() {}
    assert_eq!((house.began(), house.tasks.len(), house.stacks.spare()), (vec![0, 1, 2, 3, 4], 0, 2));
}

#[test]
fn who_was_called_gets_its_stack_though_others_come_meanwhile() {
    let mut house = House::new(1, 10);
    let (first, later) = (Event::default(), Event::default());
    house.start(0, &first);
    house.start(1, &later);
    first.happen();
    turn(&mut house.tasks);
    house.start(2, &later);
    assert_eq!((house.began(), house.stacks.waiting()), (vec![0], 2), "the stack is not the newcomer's");
    turn(&mut house.tasks);
    assert_eq!(house.began(), [0, 1]);
}

#[test]
fn who_was_called_and_left_calls_the_next() {
    let mut house = House::new(1, 10);
    let (first, later) = (Event::default(), Event::default());
    house.start(0, &first);
    let waiting: Vec<_> = (1..5).map(|number| house.start(number, &later)).collect();
    house.tasks.cancel(waiting[1]);
    assert_eq!(house.stacks.waiting(), 3, "it leaves the queue");
    first.happen();
    turn(&mut house.tasks);
    house.tasks.cancel(waiting[0]);
    turn(&mut house.tasks);
    assert_eq!((house.began(), house.stacks.lent(), house.stacks.waiting()), (vec![0, 3], 1, 1));
}

#[test]
fn polled_for_nothing_who_waits_keeps_its_place() {
    let mut house = House::new(1, 10);
    let (first, later) = (Event::default(), Event::default());
    house.start(0, &first);
    let waiting: Vec<_> = (1..4).map(|number| house.start(number, &later)).collect();
    for id in &waiting {
        assert_eq!(house.tasks.poll(*id), Polled::Pending);
    }
    assert_eq!(house.stacks.waiting(), 3);
    first.happen();
    turn(&mut house.tasks);
    turn(&mut house.tasks);
    assert_eq!(house.began(), [0, 1]);
}

#[test]
fn so_many_are_kept() {
    let mut house = House::new(10, 3);
    let event = Event::default();
    for number in 0..8 {
        house.start(number, &event);
    }
    event.happen();
    turn(&mut house.tasks);
    assert_eq!((house.tasks.len(), house.stacks.lent(), house.stacks.spare()), (0, 0, 3));
    house.start(8, &Event::default());
    assert_eq!((house.stacks.lent(), house.stacks.spare()), (1, 2), "used again");
}

#[test]
fn a_stack_has_its_least_size_and_there_is_one_at_least() {
    let options = StackOptions { stack_bytes: 0, spare_max: 0, stacks_max: 0 };
    let stacks = Stacks::new(options).expect("the system has memory");
    assert_eq!(stacks.stack_bytes(), STACK_BYTES_MIN);
    let mut tasks = tasks();
    let body = |_: &Suspend<'_>| assert_eq!(format!("{:?}", [1, 2]), "[1, 2]");
    let id = spawn(&mut tasks, Coroutine::new(&stacks, "small".into(), body));
    assert_eq!((tasks.poll(id), stacks.spare()), (Polled::Ready, 0));
}

#[test]
#[should_panic(expected = "no memory for the stack of coroutine large: ")]
fn a_stack_larger_than_any_system_gives_is_refused_when_it_is_wanted() {
    let options = StackOptions { stack_bytes: usize::MAX, ..StackOptions::default() };
    let stacks = Stacks::new(options).expect("none is made yet");
    let mut tasks = tasks();
    let id = spawn(&mut tasks, Coroutine::new(&stacks, "large".into(), |_: &Suspend<'_>| ()));
    tasks.poll(id);
}
