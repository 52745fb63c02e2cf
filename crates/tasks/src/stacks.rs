//! A worker's stacks: guarded, lent to coroutines, used again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::Waker;

use corosensei::stack::DefaultStack;

use crate::limits::{SPARE_STACKS_MAX, STACK_BYTES, STACK_BYTES_MIN, STACKS_MAX};
use crate::overflow;

/// More than any system gives; with a guard page it is a size still.
const STACK_BYTES_MAX: usize = isize::MAX as usize / 2;

/// How a worker's stacks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackOptions {
    /// A stack's size, rounded up to whole pages; at least [`STACK_BYTES_MIN`]. Only what is used of it takes memory. A guard
    /// page lies below it.
    pub stack_bytes: usize,
    /// Stacks without a coroutine that are kept, with the memory that was used of them.
    pub spare_max: usize,
    /// Stacks that are lent at the same time; further coroutines wait for one, in the order in which they came.
    pub stacks_max: usize,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self { stack_bytes: STACK_BYTES, spare_max: SPARE_STACKS_MAX, stacks_max: STACKS_MAX }
    }
}

/// A worker's stacks.
pub struct Stacks {
    options: StackOptions,
    pool: RefCell<Pool>,
}

#[derive(Default)]
struct Pool {
    spare: Vec<DefaultStack>,
    /// Stacks that coroutines have.
    lent: usize,
    /// Coroutines that were woken to take a stack, which nobody else gets.
    called: usize,
    /// Those that wait for one, in the order of their tickets.
    waiting: BTreeMap<u64, Waker>,
    tickets: u64,
}

/// A place in the queue for a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Stacks {
    /// The stacks of this thread. From now on an overflow of one of them is told on standard error, with the coroutine's label
    /// and the stack's size, before the process aborts; any other fault goes on to whoever handled it before.
    ///
    /// # Errors
    /// When the system doesn't let the signal be handled, or has no memory for the handler's own stack.
    pub fn new(options: StackOptions) -> io::Result<Rc<Self>> {
        overflow::install()?;
        let options = StackOptions {
            stack_bytes: options.stack_bytes.clamp(STACK_BYTES_MIN, STACK_BYTES_MAX),
            stacks_max: options.stacks_max.max(1),
            ..options
        };
        Ok(Rc::new(Self { options, pool: RefCell::default() }))
    }

    /// A stack's size, in bytes.
    pub fn stack_bytes(&self) -> usize {
        self.options.stack_bytes
    }

    /// How many coroutines have a stack.
    pub fn lent(&self) -> usize {
        self.pool.borrow().lent
    }

    /// How many coroutines wait for one.
    pub fn waiting(&self) -> usize {
        let pool = self.pool.borrow();
        pool.waiting.len() + pool.called
    }

    /// How many stacks are kept for the next.
    pub fn spare(&self) -> usize {
        self.pool.borrow().spare.len()
    }

    /// Lends a stack, or puts the waker into the queue and gives its ticket, which has to be brought along next time, or given back.
    ///
    /// # Errors
    /// When the system has no memory for one and no coroutine has one that could come back. The ticket is used up then.
    pub(crate) fn lend(
        &self,
        ticket: Option<Ticket>,
        waker: &Waker,
    ) -> io::Result<Result<DefaultStack, Ticket>> {
        let waits = ticket.is_some_and(|ticket| self.pool.borrow().waiting.contains_key(&ticket.0));
        if !waits && let Some(stack) = self.take(ticket.is_some())? {
            return Ok(Ok(stack));
        }
        Ok(Err(self.queue(ticket, waker.clone())))
    }

    /// Takes a stack back and calls who has waited longest.
    pub(crate) fn give_back(&self, stack: DefaultStack) {
        let mut pool = self.pool.borrow_mut();
        pool.lent -= 1;
        pool.spare.push(stack);
        drop(pool);
        self.call_next();
    }

    /// Takes back the ticket of who doesn't want a stack any more.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let waker = self.pool.borrow_mut().waiting.remove(&ticket.0);
        if waker.is_none() {
            self.pool.borrow_mut().called -= 1;
        }
        self.call_next();
    }

    /// A stack for a coroutine that is new, or was called; none where it has to wait.
    fn take(&self, called: bool) -> io::Result<Option<DefaultStack>> {
        let mut pool = self.pool.borrow_mut();
        pool.called -= usize::from(called);
        if pool.lent + pool.called >= self.options.stacks_max {
            return Ok(None);
        }
        match pool.spare.pop().map_or_else(|| DefaultStack::new(self.options.stack_bytes), Ok) {
            Ok(stack) => {
                pool.lent += 1;
                Ok(Some(stack))
            }
            Err(_) if pool.lent > 0 => Ok(None),
            Err(error) => {
                drop(pool);
                self.call_next(); // nobody else would: it has to learn the same
                Err(error)
            }
        }
    }

    /// Puts a waker into the queue, where its ticket says or at the end.
    fn queue(&self, ticket: Option<Ticket>, waker: Waker) -> Ticket {
        let mut pool = self.pool.borrow_mut();
        let ticket = ticket.unwrap_or(Ticket(pool.tickets));
        pool.tickets = pool.tickets.max(ticket.0 + 1);
        let before = pool.waiting.insert(ticket.0, waker);
        drop(pool);
        drop(before); // not while the pool is borrowed
        ticket
    }

    /// Calls who has waited longest, if there may be a stack for it, and lets go of what is kept beyond the bound.
    fn call_next(&self) {
        let mut pool = self.pool.borrow_mut();
        let next =
            if pool.lent + pool.called < self.options.stacks_max { pool.waiting.pop_first() } else { None };
        pool.called += usize::from(next.is_some());
        let wanted = pool.called;
        pool.spare.truncate(self.options.spare_max.max(wanted));
        drop(pool);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stacks")
            .field("options", &self.options)
            .field("lent", &self.lent())
            .field("waiting", &self.waiting())
            .field("spare", &self.spare())
            .finish()
    }
}
